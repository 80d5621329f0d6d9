"""Tensors and storages in memory that other processes share, and pinned memory, which there is none of.

Sharing moves a storage to shared memory in place: all tensors on it are on the shared memory afterwards. Since a
tensor's array holds an address, the tensors and storages on the memory are found among all objects, and get new arrays.
"""

from __future__ import annotations

import gc
import sys
import warnings
from typing import Any

import numpy as np

from ...backends.bit_views import resolve
from ...backends.numpy.memory import address, owner
from ...devices import META
from ...modes import active_tracer, lazy_storages, special
from ...warning_location import user_stacklevel
from ..meta import reserved
from ..shape.lazy_clones import bytes_of, make_writable, move_objects, moved_view
from ..tensor import Tensor, wrap
from .storage import TypedStorage, UntypedStorage, _check_not_batched

# ----- moving ------------------------------------------------------------------------------


def is_shared_array(array: np.ndarray) -> bool:
    """Whether an array is in shared memory."""
    from ...runtime import shared_memory

    return shared_memory.mapping_of(owner(array)) is not None


def _reference_counts(x: Tensor) -> tuple[int, int]:
    """References to the tensor's array and to the array that owns its memory."""
    array = x._array
    base = array.base
    return sys.getrefcount(array), sys.getrefcount(base) if isinstance(base, np.ndarray) else 0


#: the references of a tensor without aliases: its memory is its own, or its array is the only view of the memory
_ALONE = (_reference_counts(wrap(np.zeros(2))), _reference_counts(wrap(np.zeros(2)[:1])))


def _move(old: np.ndarray, to_move: Any, alone: bool = False, named: bool | None = None) -> None:
    """Move memory to shared memory, with `to_move`, a tensor or storage on it, and unless `alone` all others.

    Args:
        named: whether the shared memory has a name; default: as the sharing strategy demands.
    """
    from ...runtime import shared_memory

    new = shared_memory.create(old.nbytes, shared_memory.get_strategy() == "file_system" if named is None else named)
    if old.nbytes:
        new[...] = bytes_of(old)
    move_objects(old, new, (to_move,) if alone else None)


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
        _move(owner(x._array), x, alone)
        return
    _move(old, x)


def share_storage(storage: UntypedStorage, named: bool | None = None) -> Any:
    """Move a storage to shared memory unless it is there.

    Args:
        named: whether the shared memory must have a name; default: either.

    Returns:
        The mapping of the memory.

    Raises:
        RuntimeError: the storage is on meta (PyTorch's text).
    """
    from ...runtime import shared_memory

    if storage.device is META:
        raise RuntimeError(f"_share_{'filename' if named else 'fd'}_: only available on CPU")
    if lazy_storages[0]:
        make_writable(storage._memory)
    mapping = shared_memory.mapping_of(owner(storage._memory))
    if mapping is None or named not in (None, mapping.name is not None):
        _move(owner(storage._memory), storage, named=named)
        mapping = shared_memory.mapping_of(owner(storage._memory))
    return mapping


def new_shared_storage(size: int) -> UntypedStorage:
    """A storage of `size` bytes in shared memory."""
    from ...runtime import shared_memory

    return UntypedStorage._on(shared_memory.create(size, named=shared_memory.get_strategy() == "file_system"))


def new_shared_tensor(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """An uninitialised contiguous tensor in shared memory, of the dtype of `like`."""
    dtype = like._array.dtype
    memory = new_shared_storage(dtype.itemsize * int(np.prod(shape, dtype=np.int64)))._memory
    return wrap(np.ndarray(shape, dtype, memory))


def resize_storage(storage: UntypedStorage, size: int) -> None:
    """Change the number of bytes of a storage, with all tensors on it. Bytes that are added are zero.

    Raises:
        RuntimeError: the memory is not this process's own.
        NotImplementedError: a tensor on it needs bytes beyond the new size.
    """
    if not storage.resizable():
        raise RuntimeError("Trying to resize storage that is not resizable")
    if lazy_storages[0]:
        make_writable(storage._memory)
    old = owner(storage._memory)
    new = reserved((size,), np.dtype(np.uint8))
    kept = min(size, old.nbytes)
    new[:kept] = bytes_of(old)[:kept]
    tensors = []
    for each in gc.get_objects():
        kind = type(each)  # not __class__, which proxies define
        if issubclass(kind, Tensor):
            array = getattr(each, "_array", None)
            if isinstance(array, np.ndarray) and owner(array) is old:
                tensors.append(each)
        elif issubclass(kind, UntypedStorage) and each is not storage and owner(each._memory) is old:
            each._memory = new
    for x in tensors:
        if x._array.size and np.lib.array_utils.byte_bounds(x._array)[1] - address(old) > size:
            raise NotImplementedError(f"a storage is resized to {size} bytes, and a tensor of shape {tuple(x.shape)} "
                                      "on it needs more")
    for x in tensors:
        x._array = moved_view(x._array, old, new)
    storage._memory = new


# ----- methods of storages -----------------------------------------------------------------


def _storage_is_shared(self: UntypedStorage) -> bool:
    """Whether the storage is in shared memory."""
    return self._mapping is not None or is_shared_array(self._memory)


def _storage_share_memory_(self: UntypedStorage) -> UntypedStorage:
    """Move the storage to shared memory, with all tensors on it; nothing happens if it is there.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> _ = x.untyped_storage().share_memory_()
    >>> x.is_shared()
    True
    """
    share_storage(self)
    return self


def _storage_resize_(self: UntypedStorage, size: int) -> UntypedStorage:
    """Change the number of bytes, in place (`resize_storage`).

    >>> import flambeau as torch
    >>> torch.UntypedStorage([1, 2]).resize_(3).tolist()
    [1, 2, 0]
    """
    resize_storage(self, size)
    return self


def _typed_resize_(self: TypedStorage, size: int) -> None:
    """Change the number of elements, in place."""
    resize_storage(self._untyped_storage, size * self.element_size())


def _new_shared(cls: type[UntypedStorage], size: int, *, device: Any = "cpu") -> UntypedStorage:
    """A storage of `size` bytes in shared memory."""
    return new_shared_storage(size)


def _share_fd_cpu_(self: UntypedStorage | TypedStorage) -> tuple[int, int]:
    """Share the storage by a file descriptor: the descriptor, which stays the storage's, and the number of bytes."""
    mapping = share_storage(self.untyped(), named=False)
    return mapping.fd, mapping.size


def _share_filename_cpu_(self: UntypedStorage | TypedStorage) -> tuple[bytes, bytes, int]:
    """Share the storage by a name: the manager's, which there is none of, the memory's, and the number of bytes."""
    mapping = share_storage(self.untyped(), named=True)
    return b"", mapping.name.encode(), mapping.size


def _typed_is_shared(self: TypedStorage) -> bool:
    """Whether the storage is in shared memory."""
    return _storage_is_shared(self._untyped_storage)


def _typed_share_memory_(self: TypedStorage) -> TypedStorage:
    """Move the storage to shared memory (`UntypedStorage.share_memory_`)."""
    share_storage(self._untyped_storage)
    return self


def _typed_new_shared(self: TypedStorage, size: int, *, device: Any = None) -> TypedStorage:
    """A storage of `size` elements of the same dtype in shared memory."""
    return TypedStorage(new_shared_storage(size * self.element_size()), self.dtype)


# ----- pinned memory -----------------------------------------------------------------------


def _refuse_to_pin(device: Any) -> None:
    if device is not None:
        from ... import devices

        kind = devices.device(device).type
        if kind == "cpu":
            raise RuntimeError("CPU device type not an accelerator.")
        raise RuntimeError(f"Cannot pin memory for device {kind}: flambeau has no accelerator.")
    raise RuntimeError("Cannot access accelerator device when none is available.")


def _storage_pin_memory(self: UntypedStorage | TypedStorage, device: Any = None) -> Any:
    """Not supported: memory is pinned for accelerators, and there are none.

    Raises:
        RuntimeError: always (PyTorch's text).
        TypeError: the storage is on meta (PyTorch's text).
    """
    if self.device is META:
        raise TypeError("cannot pin 'torch.storage.UntypedStorage' only CPU memory can be pinned")
    _refuse_to_pin(device)


def _storage_is_pinned(self: UntypedStorage | TypedStorage, device: Any = None) -> bool:
    """Whether the storage is in pinned memory: never."""
    return False


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
    _refuse_to_pin(device)
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

for _name, _untyped, _typed in (
    ("is_shared", _storage_is_shared, _typed_is_shared),
    ("resize_", _storage_resize_, _typed_resize_),
    ("share_memory_", _storage_share_memory_, _typed_share_memory_),
    ("_share_fd_cpu_", _share_fd_cpu_, _share_fd_cpu_),
    ("_share_filename_cpu_", _share_filename_cpu_, _share_filename_cpu_),
    ("_new_shared", classmethod(_new_shared), _typed_new_shared),
    ("pin_memory", _storage_pin_memory, _storage_pin_memory),
    ("is_pinned", _storage_is_pinned, _storage_is_pinned),
):
    setattr(UntypedStorage, _name, _untyped)
    setattr(TypedStorage, _name, _typed)
TypedStorage._share_memory_ = _typed_share_memory_  # type: ignore[attr-defined]
TypedStorage._resize_ = _typed_resize_  # type: ignore[attr-defined]
TypedStorage._is_shared = _typed_is_shared  # type: ignore[attr-defined]
