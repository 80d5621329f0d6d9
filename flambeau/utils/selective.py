"""Selective checkpoints: some operators' results are kept for the recomputation, which then skips them."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.dispatch.interception import Interceptor
from ..engine.grad_mode import no_grad
from ..ops.aten import OpOverload, OpOverloadPacket, overload_of
from ..ops.declare import REGISTRY, VIEW, Op

_MISMATCH = ("This can happen if the operations in the checkpointed region are nondeterministic or depend on global "
             "state that changed between forward and backward.")


class CheckpointPolicy(enum.Enum):
    """What is to become of an operator's result: kept, or computed again.

    MUST and PREFER are the same here; so are SAVE and CPU_OFFLOAD, where there is one device.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVING = frozenset((CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE))


class SelectiveCheckpointContext:
    """What a policy is told beside the operator and its arguments: the result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Mark(enum.Enum):
    RECOMPUTE = 0
    CONSUMED = 1


#: operators that no policy is asked about: a checkpoint itself applies them
SAC_IGNORED_OPS = {overload_of(REGISTRY[key]) for key in ("detach", "_alias") if key in REGISTRY}

Policy = Callable[..., Any]
Storage = dict[OpOverload, list[Any]]


class _First(Interceptor):
    """The first run: asks the policy, and keeps."""

    def __init__(self, policy: Policy, storage: Storage) -> None:
        self.policy, self.storage = policy, storage

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any], in_place: bool) -> None:
        name = overload_of(op, inputs, in_place)
        if name in SAC_IGNORED_OPS:
            return
        shown = outs[0] if len(outs) == 1 else tuple(outs)
        with no_grad():
            context = SelectiveCheckpointContext(is_recompute=False, op_output=shown)
            policy = self.policy(context, name, *inputs, **params)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        # views cost nothing to make again, and a write must be done again
        keep = policy in _SAVING and not in_place and op.kind != VIEW
        self.storage[name].append([_Kept(x) for x in outs] if keep else _Mark.RECOMPUTE)


class _Again(Interceptor):
    """The recomputation: answers with what was kept."""

    def __init__(self, storage: Storage, allow_mutation: bool) -> None:
        self.storage, self.allow_mutation = storage, allow_mutation
        self.met: dict[OpOverload, int] = defaultdict(int)

    def __enter__(self) -> _Again:
        self.met.clear()
        super().__enter__()
        return self

    def intercept(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        name = overload_of(op, inputs, in_place)
        if name in SAC_IGNORED_OPS:
            return None
        place = self.met[name]
        self.met[name] += 1
        if name not in self.storage:
            raise RuntimeError(f"{name} encountered during backward but not found in storage. {_MISMATCH}")
        entries = self.storage[name]
        if place >= len(entries):
            raise RuntimeError(f"{name} invocation index {place} encountered during backward but not found in storage. "
                               f"{_MISMATCH}")
        entry = entries[place]
        if entry is _Mark.RECOMPUTE:
            return None
        if entry is _Mark.CONSUMED:
            raise RuntimeError("Trying to backward an extra time. You are only allowed to backward once on any region "
                               "computed under selective activation checkpoint.")
        entries[place] = _Mark.CONSUMED
        found = [kept.read(self.allow_mutation) for kept in entry]
        return found[0] if op.n_outputs == 1 else found


class _Kept:
    """A result's array, and the version it was kept at."""

    __slots__ = ("array", "counter", "version")

    def __init__(self, x: Any) -> None:
        if x._counter is None:
            x._counter = [0]
        self.array, self.counter, self.version = x._array, x._counter, x._counter[0]

    def read(self, allow_mutation: bool) -> Any:
        if self.counter[0] != self.version and not allow_mutation:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.array


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False,
                                         ) -> tuple[Interceptor, Interceptor]:
    """The blocks of a `checkpoint(..., context_fn=...)` that keeps some operators' results.

    See https://docs.pytorch.org/docs/stable/checkpoint.html

    Args:
        policy_fn_or_list: the operators whose results are kept, as `torch.ops.aten` names them; or a function
            `(ctx, op, *args, **kwargs)`, asked at each operator, that returns a `CheckpointPolicy` or a bool.
        allow_cache_entry_mutation: do not refuse results that were written to since.

    Raises:
        ValueError: something in the list is no operator.
        TypeError: neither a function nor a list.

    >>> import functools
    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> x = torch.eye(2, requires_grad=True)
    >>> keep = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    >>> checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=keep).sum().backward()
    >>> x.grad
    tensor([[5.4366, 2.0000],
            [2.0000, 5.4366]])
    """
    if isinstance(policy_fn_or_list, list):
        kept = policy_fn_or_list
        for op in kept:
            if not isinstance(op, OpOverload):
                hint = ("Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                        "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                        if isinstance(op, OpOverloadPacket) else "")
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                                 f"{hint}")

        def policy(ctx: Any, op: OpOverload, *args: Any, **kwargs: Any) -> bool:
            return op in kept
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = defaultdict(list)
    return _First(policy, storage), _Again(storage, allow_cache_entry_mutation)


__all__ = ["SAC_IGNORED_OPS", "CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]
