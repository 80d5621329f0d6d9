"""Regions that save nothing: what their nodes would have saved is computed again when backward asks for it.

A saved-tensor hook gives each node an empty slot instead of a tensor. When a backward pass first
reads a slot, the region's function runs again under another hook, which puts the tensors, met in the
same order, into the slots; each is read once and forgotten. The inputs of a region are saved as a node
would save them, so that a region inside another one recomputes that one first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

from .._tensor import Tensor
from ..autograd.graph import saved_tensors_hooks
from ..engine.engine import current_graph_task_id
from ..engine.grad_mode import enable_grad
from ..engine.saved.modified_in_place import modified_input_message
from ..engine.saved.saved_tensors import Packed, innermost_hooks

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
    """A region did not compute again what it had computed at first, or was asked for it twice."""


class GraphExecGroup:
    """A block whose backward passes share one recomputation of each region.

    They must not need the same saved tensor twice. Only `checkpoint(..., use_reentrant=False)` heeds it.

    Raises:
        RuntimeError: on entry, inside another such block.

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


class _Stop(Exception):
    """Everything that is needed has been recomputed."""


class _Slot:
    """What a node holds instead of a saved tensor."""

    __slots__ = ("__weakref__", "values")

    def __init__(self) -> None:
        self.values: dict[object, Any] = {}  # pass -> the tensor, recomputed for it


_READ = object()  # stands for a tensor that was read, and let go


class _KeptInput:
    """A tensor among a region's arguments, saved as a node would save it."""

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
    """One call of a function whose saved tensors are to be recomputed.

    Args:
        recompute: runs the function again, on the arguments it is given.
        args: the arguments.
        describe: what is compared between a tensor and its recomputation.
        early_stop: whether to stop recomputing after the last tensor that was saved.
        explain: called with the error when a recomputation goes wrong; raises a better one.
    """

    def __init__(self, recompute: Callable[..., Any], args: Sequence[Any], describe: Callable[[Any], Any], *,
                 early_stop: bool, explain: Callable[[CheckpointError], NoReturn] | None) -> None:
        self.recompute = recompute
        self.args = [_KeptInput(x) if isinstance(x, Tensor) else x for x in args]
        self.describe = describe
        self.early_stop = early_stop
        self.explain = explain
        self.slots: list[weakref.ref[_Slot]] = []
        self.descriptions: list[Any] = []
        self.recomputed: set[object] = set()  # the passes for which it was done
        self.complete = False  # whether the first call has ended
        self.uneven = False  # whether the recomputation may rightly have saved more than the first call so far

    def hooks(self) -> saved_tensors_hooks:
        """The block in which the function runs for the first time."""
        return saved_tensors_hooks(self._reserve, self._fill if self.explain is None else self._fill_or_explain)

    def _reserve(self, x: Tensor) -> _Slot:
        slot = _Slot()
        self.slots.append(weakref.ref(slot))
        self.descriptions.append(self.describe(x))
        return slot

    def _fill_or_explain(self, slot: _Slot) -> Tensor:
        try:
            return self._fill(slot)
        except CheckpointError as error:
            assert self.explain is not None
            self.explain(error)

    def _fill(self, slot: _Slot) -> Tensor:
        """The tensor that belongs into a slot, recomputed with all the others if this pass has not done so yet."""
        group, number = _group.get(), current_graph_task_id()
        run: object = group if group is not None else number
        alone = group is None and number == -1  # somebody looks at a saved tensor: nothing is kept for later
        if alone:
            run = object()
        if run not in self.recomputed:
            self._run_again(run)
        value = slot.values.get(run)
        if value is None:
            raise AssertionError("Something went unexpectedly wrong in activation checkpoint. Please report this bug "
                                 "by filing an issue to PyTorch.")
        if value is _READ:
            overlap = ("Performing two backward calls that overlap (i.e. require the same saved activation in order to "
                       "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup "
                       "context. ") if group is not None else ""
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{overlap}If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise "
                "please open an issue with details on your use case.")
        slot.values[run] = _READ
        if alone:
            self.recomputed.discard(run)
            for reference in self.slots:
                other = reference()
                if other is not None:
                    other.values.pop(run, None)
        return value

    def _run_again(self, run: object) -> None:
        args = [x.read() if isinstance(x, _KeptInput) else x for x in self.args]
        again = _Recomputation(self, run)
        try:
            with saved_tensors_hooks(again.keep, _itself), enable_grad():
                self.recompute(*args)
        except _Stop:
            pass
        self.recomputed.add(run)
        self._check(run, again.met)

    def _check(self, run: object, met: int) -> None:
        """Compare what was recomputed with what was saved at first."""
        if self.uneven:
            return
        if met != len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.slots)}\n"
                f"Number of tensors saved during recomputation: {met}.\n{TIP}")
        different = ""
        for i, (reference, before) in enumerate(zip(self.slots, self.descriptions, strict=True)):
            slot = reference()
            if slot is None:
                continue
            now = self.describe(slot.values[run])
            if now != before:
                different += f"tensor at position {i}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{different}.\n{TIP}")


class _Recomputation:
    """Puts what the second call saves into the slots, in order."""

    def __init__(self, region: Region, run: object) -> None:
        self.region, self.run = region, run
        self.met = 0

    def keep(self, x: Tensor) -> Tensor:
        region, place = self.region, self.met
        self.met += 1
        if x._requires_grad:
            x = x.detach()
        if place >= len(region.slots):
            if not region.complete:
                # backward inside the function itself: the first call has not come this far
                region.uneven = True
                return x
            raise CheckpointError("torch.utils.checkpoint: trying to save more tensors during recomputation than "
                                  f"during the original forward pass.\n{TIP}")
        slot = region.slots[place]()
        if slot is not None:  # else a backward inside the function has freed it
            slot.values[self.run] = x
        if region.early_stop and self.met == len(region.slots):
            raise _Stop
        return x  # for a backward inside the function, through the graph that is being made


def _itself(x: Tensor) -> Tensor:
    return x


__all__ = ["CheckpointError", "GraphExecGroup", "Region"]
