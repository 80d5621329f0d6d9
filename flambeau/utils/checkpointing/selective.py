"""Selective activation checkpointing: outputs of chosen operators are cached, and the recomputation reuses them."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor.dispatch.interception import Interceptor
from ...engine.grad_mode import no_grad
from ...ops.aten import OpOverload, OpOverloadPacket, overload_of
from ...ops.declare import REGISTRY, VIEW, Op

_MISMATCH = ("This can happen if the operations in the checkpointed region are nondeterministic or depend on global "
             "state that changed between forward and backward.")


class CheckpointPolicy(enum.Enum):
    """Whether the output of an operator is saved or recomputed.

    MUST and PREFER are equivalent. CPU_OFFLOAD is equivalent to RECOMPUTE.

    >>> from flambeau.utils.checkpoint import CheckpointPolicy
    >>> CheckpointPolicy.MUST_SAVE.name
    'MUST_SAVE'
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVING = frozenset((CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE))


class SelectiveCheckpointContext:
    """First argument of a policy function.

    Args:
        is_recompute: whether the operator runs in the recomputation; False.
        op_output: the output of the operator, or a tuple of outputs.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import SelectiveCheckpointContext
    >>> SelectiveCheckpointContext(is_recompute=False, op_output=torch.ones(1)).op_output
    tensor([1.])
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Mark(enum.Enum):
    RECOMPUTE = 0
    CONSUMED = 1


#: operators that the checkpoint itself applies; the policy is not called for them
SAC_IGNORED_OPS = {overload_of(REGISTRY[key]) for key in ("detach", "_alias") if key in REGISTRY}

Policy = Callable[..., Any]
Storage = dict[OpOverload, list[Any]]


class _CachingInterceptor(Interceptor):
    """Forward: calls the policy for each operator, and caches outputs."""

    def __init__(self, policy: Policy, storage: Storage) -> None:
        self.policy, self.storage = policy, storage

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        save = self.saves(op, inputs, params, outs, in_place)
        if save is not None:
            self.storage[overload_of(op, inputs, in_place)].append(
                [_CachedOutput(x) for x in outs] if save else _Mark.RECOMPUTE)

    def saves(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any], in_place: bool
              ) -> bool | None:
        """Whether the results of an operator are saved; None for operators that the checkpoint itself applies."""
        name = overload_of(op, inputs, in_place)
        if name in SAC_IGNORED_OPS:
            return None
        op_output = outs[0] if len(outs) == 1 else tuple(outs)
        with no_grad():
            context = SelectiveCheckpointContext(is_recompute=False, op_output=op_output)
            policy = self.policy(context, name, *inputs, **params)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        # views are free to recompute, and a write must be repeated
        return policy in _SAVING and not in_place and op.kind != VIEW


def recorder_of(context: Any) -> Any:
    """The recorder of a program for the first context manager of `checkpoint`; None unless it is selective.

    >>> recorder_of(create_selective_checkpoint_contexts([])[0]).saved
    []
    """
    if not isinstance(context, _CachingInterceptor):
        return None
    from ...compiler.tracing.recomputation import PolicyRecorder  # called in traces only

    return PolicyRecorder(context.policy, context.saves)


class _CachedInterceptor(Interceptor):
    """Recomputation: returns cached outputs in place of operator calls."""

    def __init__(self, storage: Storage, allow_mutation: bool) -> None:
        self.storage, self.allow_mutation = storage, allow_mutation
        self.calls: dict[OpOverload, int] = defaultdict(int)

    def __enter__(self) -> _CachedInterceptor:
        self.calls.clear()
        super().__enter__()
        return self

    def intercept(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        name = overload_of(op, inputs, in_place)
        if name in SAC_IGNORED_OPS:
            return None
        index = self.calls[name]
        self.calls[name] += 1
        if name not in self.storage:
            raise RuntimeError(f"{name} encountered during backward but not found in storage. {_MISMATCH}")
        entries = self.storage[name]
        if index >= len(entries):
            raise RuntimeError(f"{name} invocation index {index} encountered during backward but not found in storage. "
                               f"{_MISMATCH}")
        entry = entries[index]
        if entry is _Mark.RECOMPUTE:
            return None
        if entry is _Mark.CONSUMED:
            raise RuntimeError("Trying to backward an extra time. You are only allowed to backward once on any region "
                               "computed under selective activation checkpoint.")
        entries[index] = _Mark.CONSUMED
        outputs = [cached.read(self.allow_mutation) for cached in entry]
        return outputs[0] if op.n_outputs == 1 else outputs


class _CachedOutput:
    """The array of an output, and its version when it was cached."""

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
    """The context managers for `checkpoint(..., context_fn=...)` that save the outputs of chosen operators.

    See https://docs.pytorch.org/docs/stable/checkpoint.html

    Args:
        policy_fn_or_list: a list of overloads in `torch.ops.aten` whose outputs are saved; or a function
            `(ctx, op, *args, **kwargs)`, called for each operator, that returns a `CheckpointPolicy` or a bool.
        allow_cache_entry_mutation: do not raise if a saved output was modified in place.

    Returns:
        Context managers for forward and for the recomputation.

    Raises:
        ValueError: an item of the list is not an overload.
        TypeError: the argument is neither a function nor a list.

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
        saved_ops = policy_fn_or_list
        for op in saved_ops:
            if not isinstance(op, OpOverload):
                hint = ("Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                        "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                        if isinstance(op, OpOverloadPacket) else "")
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                                 f"{hint}")

        def policy(ctx: Any, op: OpOverload, *args: Any, **kwargs: Any) -> bool:
            return op in saved_ops
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = defaultdict(list)
    return _CachingInterceptor(policy, storage), _CachedInterceptor(storage, allow_cache_entry_mutation)


__all__ = ["SAC_IGNORED_OPS", "CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts",
           "recorder_of"]
