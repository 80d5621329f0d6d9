"""Writing to saved tensors: they are copied just before a write, so that backward sees what was saved.

Saved-tensor hooks keep the tensors themselves; whatever is about to write to memory says so here
(`about_to_write`), and whatever was saved of that memory, at its present version, is copied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ...backends.numpy.memory import address, owner
from ...modes import grad_mode
from .saved_tensors import pop_hooks, push_hooks

_OUTSIDE = ("Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
            "originally recorded.")


class _Handle:
    """What a node holds instead of a tensor; when the last holder is gone, so is what was kept for it."""

    __slots__ = ("__weakref__",)


def _memory(tensor: Any) -> tuple[int, int]:
    """The memory a tensor shows and its version: what a write to it, or to a view of it, changes."""
    return address(owner(tensor._array)), 0 if tensor._counter is None else tensor._counter[0]


class AllowMutationOnSavedContext:
    """What was saved in the block, and the copies that writes made necessary."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[_Handle, Any] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[_Handle, Any] = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary[tuple[int, ...], _Handle] = WeakValueDictionary()
        self.sid_to_tid: dict[tuple[int, int], set[tuple[int, ...]]] = {}

    def clear(self) -> None:
        """Forget everything: graphs recorded in the block cannot be run backward any more."""
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, tensor: Any) -> _Handle:
        memory = _memory(tensor)
        tid = (id(tensor), *memory)
        handle = self.tid_to_weakhandle.get(tid)
        if handle is None:
            handle = _Handle()
            self.tid_to_weakhandle[tid] = handle
            self.original[handle] = tensor
            self.sid_to_tid.setdefault(memory, set()).add(tid)
        return handle

    def unpack(self, handle: _Handle) -> Any:
        if _active.get() is None:
            raise AssertionError(_OUTSIDE)
        found = self.cloned.get(handle)
        if found is None:
            found = self.original.get(handle)
        if found is None:
            raise AssertionError(_OUTSIDE)
        return found

    def about_to_write(self, tensor: Any) -> None:
        """Copy what was saved of a tensor's memory as it is now."""
        for tid in self.sid_to_tid.pop(_memory(tensor), ()):
            handle = self.tid_to_weakhandle.get(tid)
            if handle is not None and handle in self.original:
                grad = grad_mode.set(False)  # the copy has no history: unpacking gives it the saved one
                try:
                    self.cloned[handle] = self.original.pop(handle).clone()
                finally:
                    grad_mode.reset(grad)


_active: ContextVar[AllowMutationOnSavedContext | None] = ContextVar("mutation_of_saved_tensors", default=None)


def about_to_write(tensor: Any) -> None:
    """Say that a tensor's memory is about to be written to."""
    context = _active.get()
    if context is not None:
        context.about_to_write(tensor)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[AllowMutationOnSavedContext]:
    """A block in which tensors that the graph saved may be written to: they are copied first.

    Backward must run inside the block. See
    https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.allow_mutation_on_saved_tensors

    Returns:
        The block's context, whose `clear()` lets go of all that it keeps.

    Raises:
        RuntimeError: such a block is open already.
        AssertionError: in backward, outside the block that recorded the graph.

    >>> import flambeau as torch
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     a = torch.tensor([1., 2.], requires_grad=True)
    ...     b = a.clone()
    ...     out = (b ** 2).sum()
    ...     _ = b.zero_()
    ...     out.backward()
    >>> a.grad
    tensor([2., 4.])
    """
    if _active.get() is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = AllowMutationOnSavedContext()
    push_hooks(context.pack, context.unpack)
    token = _active.set(context)
    try:
        yield context
    finally:
        context.clear()
        _active.reset(token)
        pop_hooks()


__all__ = ["AllowMutationOnSavedContext", "about_to_write", "allow_mutation_on_saved_tensors"]
