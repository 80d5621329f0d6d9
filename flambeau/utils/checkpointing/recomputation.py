"""Non-reentrant checkpoints: regions whose saved tensors are recomputed when backward first reads one.

In forward, a pack hook replaces each saved tensor by an empty slot. When a backward pass first unpacks a slot, the
function of the region runs again; its saved tensors fill the slots in the same order. Each slot is read once per pass
and then released. The inputs of a region are saved like those of a node, under the enclosing saved-tensor hooks:
unpacking an input of a nested region recomputes the outer region first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

from ..._tensor import Tensor
from ...autograd.graph import saved_tensors_hooks
from ...engine.engine import current_graph_task_id
from ...engine.grad_mode import enable_grad
from ...engine.saved.modified_in_place import modified_input_message
from ...engine.saved.saved_tensors import Packed, innermost_hooks

TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\N{NON-BREAKING HYPHEN}debug mode globally.

If this error occurs under torch.compile with automatic_dynamic_shapes enabled,
it may be because the recomputation selected a different compiled graph than the
forward pass (e.g., a dynamic graph instead of the original static graph).
To fix this, either:
  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as
    dynamic upfront, avoiding the static-to-dynamic transition.
  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache
    reordering, which can change which graph is checked first between forward
    and recompute.
See https://github.com/pytorch/pytorch/issues/166926 for more details and
workaround examples.
"""


class CheckpointError(RuntimeError):
    """A recomputation differs from forward, or a saved tensor was unpacked twice.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import CheckpointError, checkpoint
    >>> functions = [torch.exp, lambda x: x * 2]
    >>> y = checkpoint(lambda x: functions.pop(0)(x), torch.ones(1, requires_grad=True), use_reentrant=False)
    >>> try:
    ...     y.backward()
    ... except CheckpointError as error:
    ...     print(str(error).splitlines()[0])
    torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.
    """


class GraphExecGroup:
    """A context manager whose backward passes share one recomputation of each region.

    They must not need the same saved tensor twice. Only non-reentrant checkpoints use it.

    Raises:
        RuntimeError: on entry, if another group is active.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import GraphExecGroup, checkpoint
    >>> calls = []
    >>> x = torch.tensor(1., requires_grad=True)
    >>> y, z = checkpoint(lambda x: (calls.append(x), x.sin(), x.cos())[1:], x, use_reentrant=False, early_stop=False)
    >>> with GraphExecGroup():
    ...     y.backward()
    ...     z.backward()
    >>> len(calls)
    2
    """

    def __enter__(self) -> GraphExecGroup:
        if _group.get() is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {_group.get()}")
        _group.set(self)
        return self

    def __exit__(self, *args: object) -> None:
        _group.set(None)


_group: ContextVar[GraphExecGroup | None] = ContextVar("graph_exec_group", default=None)


class _StopRecomputation(Exception):
    """Raised when the last slot is filled, to stop the recomputation (`early_stop`)."""


class _Slot:
    """Placeholder that a node saves in place of a tensor."""

    __slots__ = ("__weakref__", "values")

    def __init__(self) -> None:
        self.values: dict[object, Any] = {}  # backward pass -> recomputed tensor


_CONSUMED = object()  # marks a tensor that was unpacked and released


class _SavedInput:
    """A tensor argument of a region, saved like the input of a node: packed by hooks, with a version check."""

    __slots__ = ("packed", "version", "x")

    def __init__(self, x: Tensor) -> None:
        hooks = innermost_hooks()
        self.packed = None if hooks is None else Packed(x, hooks)
        self.x = x if hooks is None else None
        self.version = 0 if x._counter is None else x._counter[0]

    def read(self) -> Tensor:
        if self.packed is not None:
            return self.packed.unpack()
        x = self.x
        assert x is not None
        if x._counter is not None and x._counter[0] != self.version:
            raise RuntimeError(modified_input_message(x, x._counter[0], self.version))
        return x


class Region:
    """One checkpointed call of a function.

    Args:
        recompute: runs the function again on given arguments.
        args: the arguments.
        metadata_of: maps a saved tensor to the metadata that its recomputation must have.
        early_stop: whether to stop recomputing after the last saved tensor.
        explain: called with the error of a failed recomputation; raises one with more details.
    """

    def __init__(self, recompute: Callable[..., Any], args: Sequence[Any], metadata_of: Callable[[Any], Any], *,
                 early_stop: bool, explain: Callable[[CheckpointError], NoReturn] | None) -> None:
        self.recompute = recompute
        self.args = [_SavedInput(x) if isinstance(x, Tensor) else x for x in args]
        self.metadata_of = metadata_of
        self.early_stop = early_stop
        self.explain = explain
        self.slots: list[weakref.ref[_Slot]] = []
        self.metadata: list[Any] = []
        self.recomputed: set[object] = set()  # the backward passes that have recomputed
        self.forward_done = False  # whether forward has returned
        self.may_save_more = False  # backward inside the function: forward is incomplete

    def hooks(self) -> saved_tensors_hooks:
        """The saved-tensor hooks under which forward runs."""
        return saved_tensors_hooks(self._pack, self._unpack if self.explain is None else self._unpack_or_explain)

    def _pack(self, x: Tensor) -> _Slot:
        slot = _Slot()
        self.slots.append(weakref.ref(slot))
        self.metadata.append(self.metadata_of(x))
        return slot

    def _unpack_or_explain(self, slot: _Slot) -> Tensor:
        try:
            return self._unpack(slot)
        except CheckpointError as error:
            assert self.explain is not None
            self.explain(error)

    def _unpack(self, slot: _Slot) -> Tensor:
        """The tensor of a slot; the first call in a backward pass recomputes all slots."""
        group, task_id = _group.get(), current_graph_task_id()
        pass_id: object = group if group is not None else task_id
        outside_backward = group is None and task_id == -1  # `node.saved_tensors`: cache nothing
        if outside_backward:
            pass_id = object()
        if pass_id not in self.recomputed:
            self._run_recompute(pass_id)
        value = slot.values.get(pass_id)
        if value is None:
            raise AssertionError("Something went unexpectedly wrong in activation checkpoint. Please report this bug "
                                 "by filing an issue to PyTorch.")
        if value is _CONSUMED:
            overlap = ("Performing two backward calls that overlap (i.e. require the same saved activation in order to "
                       "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup "
                       "context. ") if group is not None else ""
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{overlap}If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise "
                "please open an issue with details on your use case.")
        slot.values[pass_id] = _CONSUMED
        if outside_backward:
            self.recomputed.discard(pass_id)
            for reference in self.slots:
                other = reference()
                if other is not None:
                    other.values.pop(pass_id, None)
        return value

    def _run_recompute(self, pass_id: object) -> None:
        args = [x.read() if isinstance(x, _SavedInput) else x for x in self.args]
        recomputation = _Recomputation(self, pass_id)
        try:
            with saved_tensors_hooks(recomputation.pack, _identity), enable_grad():
                self.recompute(*args)
        except _StopRecomputation:
            pass
        self.recomputed.add(pass_id)
        self._check(pass_id, recomputation.n_saved)

    def _check(self, pass_id: object, n_saved: int) -> None:
        """Compare the number and the metadata of the recomputed tensors with those of forward."""
        if self.may_save_more:
            return
        if n_saved != len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.slots)}\n"
                f"Number of tensors saved during recomputation: {n_saved}.\n{TIP}")
        mismatches = ""
        for i, (reference, saved) in enumerate(zip(self.slots, self.metadata, strict=True)):
            slot = reference()
            if slot is None:
                continue
            recomputed = self.metadata_of(slot.values[pass_id])
            if recomputed != saved:
                mismatches += f"tensor at position {i}:\nsaved metadata: {saved}\nrecomputed metadata: {recomputed}\n"
        if mismatches:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{mismatches}.\n{TIP}")


class _Recomputation:
    """The pack hook of a recomputation: fills the slots of a region in order."""

    def __init__(self, region: Region, pass_id: object) -> None:
        self.region, self.pass_id = region, pass_id
        self.n_saved = 0

    def pack(self, x: Tensor) -> Tensor:
        region, position = self.region, self.n_saved
        self.n_saved += 1
        if x._requires_grad:
            x = x.detach()
        if position >= len(region.slots):
            if not region.forward_done:
                # backward inside the function: forward has not saved this tensor yet
                region.may_save_more = True
                return x
            raise CheckpointError("torch.utils.checkpoint: trying to save more tensors during recomputation than "
                                  f"during the original forward pass.\n{TIP}")
        slot = region.slots[position]()
        if slot is not None:  # else the node was freed by a backward inside the function
            slot.values[self.pass_id] = x
        if region.early_stop and self.n_saved == len(region.slots):
            raise _StopRecomputation
        return x  # for a backward inside the function, through the recomputed graph


def _identity(x: Tensor) -> Tensor:
    return x


__all__ = ["CheckpointError", "GraphExecGroup", "Region"]
