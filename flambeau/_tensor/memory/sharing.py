"""Tensors in memory that other processes share, and in pinned memory, which there is none of.

Sharing moves a storage to shared memory in place: all tensors on it are on the shared memory afterwards. Since a
tensor's array holds an address, the tensors and storages on the memory are found among all objects, and get new arrays.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from ...backends.bit_views import resolve
from ...backends.numpy.memory import owner
from ...devices import META
from ...modes import active_tracer, lazy_storages, special
from ...warning_location import user_stacklevel
from ..shape.lazy_clones import make_writable
from ..tensor import Tensor, wrap
from .shared_storage import is_shared_array, move_to_shared_memory, new_shared_memory, refuse_to_pin
from .storage import _check_not_batched

# ----- moving ------------------------------------------------------------------------------


def _reference_counts(x: Tensor) -> tuple[int, int]:
    """References to the tensor's array and to the array that owns its memory."""
    array = x._array
    base = array.base
    return sys.getrefcount(array), sys.getrefcount(base) if isinstance(base, np.ndarray) else 0


#: the references of a tensor without aliases: its memory is its own, or its array is the only view of the memory
_ALONE = (_reference_counts(wrap(np.zeros(2))), _reference_counts(wrap(np.zeros(2)[:1])))


def share_tensor(x: Tensor) -> None:
    """Move a tensor's storage to shared memory unless it is there."""
    _check_not_batched(x)
    if x._device is META:
        raise RuntimeError("_share_fd_: only available on CPU")
    if special[0] and (tracer := active_tracer.get()) is not None:
        tracer.on_memory_change("share_memory_")
    if is_shared_array(x._array):
        return
    if lazy_storages[0]:
        make_writable(x._array)
    old = owner(x._array)
    if not old.flags.forc or min(x._array.strides, default=0) < 0:  # no storage describes such memory
        x._array = np.array(resolve(x._array), order="C", copy=True)
        old = x._array
    elif old is x._array or x._array.base is old:
        del old  # it counts
        alone = _reference_counts(x) in _ALONE
        move_to_shared_memory(owner(x._array), x, alone)
        return
    move_to_shared_memory(old, x)


def new_shared_tensor(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """An uninitialised contiguous tensor in shared memory, of the dtype of `like`."""
    dtype = like._array.dtype
    memory = new_shared_memory(dtype.itemsize * int(np.prod(shape, dtype=np.int64)))
    return wrap(np.ndarray(shape, dtype, memory))


# ----- pinned memory -----------------------------------------------------------------------


def _warn_of_device(method: str) -> None:
    warnings.warn(f"The argument 'device' of Tensor.{method}() is deprecated. Please do not pass this argument.",
                  DeprecationWarning, stacklevel=user_stacklevel())


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Not supported: memory is pinned for accelerators, and there are none.

    Raises:
        RuntimeError: always (PyTorch's text).

    >>> import flambeau as torch
    >>> torch.ones(2).pin_memory()
    Traceback (most recent call last):
    RuntimeError: Cannot access accelerator device when none is available.
    """
    if device is not None:
        _warn_of_device("pin_memory")
        _warn_of_device("is_pinned")  # which PyTorch asks first
    refuse_to_pin(device)
    return self


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is pinned: never.

    >>> import flambeau as torch
    >>> torch.ones(1).is_pinned()
    False
    """
    if device is not None:
        _warn_of_device("is_pinned")
    return False


# ----- methods of tensors ------------------------------------------------------------------


def share_memory_(self: Tensor) -> Tensor:
    """Move the storage to shared memory, with all tensors on it; nothing happens if it is there.

    Processes that are forked afterwards, or get the tensor through a queue, see each other's writes.

    >>> import flambeau as torch
    >>> torch.ones(2).share_memory_().is_shared()
    True
    """
    share_tensor(self)
    return self


def is_shared(self: Tensor) -> bool:
    """Whether the memory is shared between processes.

    >>> import flambeau as torch
    >>> torch.ones(2).is_shared()
    False
    """
    _check_not_batched(self)
    return is_shared_array(self._array)


METHODS: dict[str, Any] = {"share_memory_": share_memory_, "is_shared": is_shared, "pin_memory": pin_memory,
                           "is_pinned": is_pinned}
