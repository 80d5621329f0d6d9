"""Lazy clones: storages that share their memory until one of them is written to (copy on write).

A storage is the array that owns its memory. `share` makes another one on the same memory, and both are lazy from then
on. The first write to a lazy storage gives it memory of its own; the last one that is left keeps the memory. Since a
tensor's array holds an address, the tensors and storages on the memory are found among all objects, and get new arrays.
While a storage is lazy, operators take the general path, which asks here before it writes.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.numpy.memory import address, owner
from ...engine.tensor_interface import layer
from ...modes import lazy_storages, special
from ..tensor import Tensor

#: classes of objects on memory, and the attribute with their array
HOLDERS: list[tuple[type, str]] = [(Tensor, "_array")]


class _Memory:
    """Memory that lazy storages share: the arrays that own it, one for each storage, by id."""

    def __init__(self) -> None:
        self.storages: dict[int, weakref.ref[np.ndarray]] = {}


_memory_of: dict[int, _Memory] = {}
#: what identifies storages that have moved, by the id of the array that owns their memory
_identities: dict[int, tuple[weakref.ref[np.ndarray], int]] = {}


# ----- moving ------------------------------------------------------------------------------


def moved_view(array: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The view of `new` that corresponds to the view `array` of `old`."""
    offset = address(array) - address(old) if array.size else 0
    return array.__class__(array.shape, array.dtype, new, offset, array.strides)  # a `BitView` keeps its bits


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The bytes of an array that owns its memory."""
    return array.reshape(-1, order="A").view(np.uint8) if array.nbytes else np.zeros(0, np.uint8)


def move_objects(old: np.ndarray, new: np.ndarray, objects: Any = None) -> None:
    """Move the tensors and storages on memory to other memory.

    Args:
        old, new: the arrays that own the memory.
        objects: those that are moved; default: all.
    """
    key, known = id(new), identity(old)
    _identities[key] = weakref.ref(new, lambda _: _identities.pop(key, None)), known
    for each in gc.get_objects() if objects is None else objects:
        kind = type(each)  # not __class__, which proxies define
        for holder, name in HOLDERS:
            if issubclass(kind, holder):
                array = getattr(each, name, None)
                if isinstance(array, np.ndarray) and owner(array) is old:
                    setattr(each, name, moved_view(array, old, new))


# ----- lazy storages -----------------------------------------------------------------------


def identity(array: np.ndarray) -> int:
    """What identifies the storage of an array, also after it got other memory."""
    storage = owner(array)
    moved = _identities.get(id(storage))
    return id(storage) if moved is None else moved[1]


def is_lazy(array: np.ndarray) -> bool:
    """Whether an array is on a lazy storage."""
    return id(owner(array)) in _memory_of


def share(array: np.ndarray) -> np.ndarray | None:
    """A view like `array` on a new lazy storage of the same memory; None if others own the memory."""
    old = owner(array)
    memory = _memory_of.get(id(old))
    if not array.size or (memory is None and not (old.flags.owndata and old.flags.forc and old.flags.writeable)):
        return None
    if memory is None:
        memory = _Memory()
        _add(memory, old)
    new = np.frombuffer(bytes_of(old).data, np.uint8)
    _add(memory, new)
    return moved_view(array, old, new)


def _add(memory: _Memory, storage: np.ndarray) -> None:
    key = id(storage)
    memory.storages[key] = weakref.ref(storage, lambda _: _drop(key))
    _memory_of[key] = memory
    lazy_storages[0] += 1
    special[0] += 1


def _drop(key: int) -> None:
    memory = _memory_of.pop(key, None)
    if memory is not None:
        del memory.storages[key]
        lazy_storages[0] -= 1
        special[0] -= 1


def make_writable(array: np.ndarray) -> None:
    """Give the storage of an array memory of its own if it is lazy; tensors on it get other arrays."""
    write(array, lambda: None)


def write(array: np.ndarray, compute: Callable[[], None]) -> None:
    """Call a function that writes to an array, which may be on a lazy storage."""
    old = owner(array)
    memory = _memory_of.get(id(old))
    if memory is None:
        compute()
        return
    if len(memory.storages) == 1:
        _drop(id(old))
        compute()
        return
    # the function may hold the array itself: it writes to the memory that is shared, which is restored
    before = bytes_of(old).copy()
    compute()
    new = bytes_of(old).copy()
    bytes_of(old)[...] = before
    _drop(id(old))
    move_objects(old, new)


layer.make_writable = make_writable

__all__ = ["HOLDERS", "bytes_of", "identity", "is_lazy", "make_writable", "move_objects", "moved_view",
           "share", "write"]
