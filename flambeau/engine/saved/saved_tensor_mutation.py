"""Mutation of saved tensors: copy on write, so that backward reads the values that were saved.

Saved-tensor hooks pack a tensor as a handle. In-place operators call `before_write`, which clones the tensors that
were saved of that memory at its current version.
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
    """The packed value of a tensor; the tensor is released with the last reference to its handle."""

    __slots__ = ("__weakref__",)


def _storage_version(tensor: Any) -> tuple[int, int]:
    """The address of a tensor's storage and its version, which a write to the tensor or to a view of it changes."""
    return address(owner(tensor._array)), 0 if tensor._counter is None else tensor._counter[0]


class AllowMutationOnSavedContext:
    """The tensors that were saved in the block, and the clones of those that were written to."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[_Handle, Any] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[_Handle, Any] = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary[tuple[int, ...], _Handle] = WeakValueDictionary()
        self.sid_to_tid: dict[tuple[int, int], set[tuple[int, ...]]] = {}

    def clear(self) -> None:
        """Drop all tensors: graphs recorded in the block can no longer be run backward."""
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, tensor: Any) -> _Handle:
        memory = _storage_version(tensor)
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
        tensor = self.cloned.get(handle)
        if tensor is None:
            tensor = self.original.get(handle)
        if tensor is None:
            raise AssertionError(_OUTSIDE)
        return tensor

    def before_write(self, tensor: Any) -> None:
        """Clone what was saved of a tensor's storage at its current version."""
        for tid in self.sid_to_tid.pop(_storage_version(tensor), ()):
            handle = self.tid_to_weakhandle.get(tid)
            if handle is not None and handle in self.original:
                grad = grad_mode.set(False)  # the clone has no history; unpacking restores the saved one
                try:
                    self.cloned[handle] = self.original.pop(handle).clone()
                finally:
                    grad_mode.reset(grad)


_active: ContextVar[AllowMutationOnSavedContext | None] = ContextVar("mutation_of_saved_tensors", default=None)


def before_write(tensor: Any) -> None:
    """Notify the active context that a tensor is about to be written to."""
    context = _active.get()
    if context is not None:
        context.before_write(tensor)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[AllowMutationOnSavedContext]:
    """A block in which saved tensors may be written to: they are cloned first.

    Backward must run inside the block. See
    https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.allow_mutation_on_saved_tensors

    Returns:
        The context; its `clear()` drops all saved tensors.

    Raises:
        RuntimeError: such a block is active already.
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


__all__ = ["AllowMutationOnSavedContext", "allow_mutation_on_saved_tensors", "before_write"]
