"""Storages in memory that other processes share, storages that are resized, and pinned memory, which there is none of.

Sharing moves a storage to shared memory in place: all tensors on it are on the shared memory afterwards. Since a
tensor's array holds an address, the tensors and storages on the memory are found among all objects, and get new arrays.
"""

from __future__ import annotations

import gc
from typing import Any, Self

import numpy as np

from ...backends.numpy.memory import address, owner
from ...devices import META
from ...modes import lazy_storages
from ..meta import reserved
from ..shape.lazy_clones import bytes_of, make_writable, move_objects, moved_view
from ..tensor import Tensor


def is_shared_array(array: np.ndarray) -> bool:
    """Whether an array is in shared memory."""
    from ...runtime import shared_memory

    return shared_memory.mapping_of(owner(array)) is not None


def move_to_shared_memory(old: np.ndarray, to_move: Any, alone: bool = False, named: bool | None = None) -> None:
    """Move memory to shared memory, with `to_move`, a tensor or storage on it, and unless `alone` all others.

    Args:
        named: whether the shared memory has a name; default: as the sharing strategy demands.
    """
    from ...runtime import shared_memory

    new = shared_memory.create(old.nbytes, shared_memory.get_strategy() == "file_system" if named is None else named)
    if old.nbytes:
        new[...] = bytes_of(old)
    move_objects(old, new, (to_move,) if alone else None)


def share_storage(storage: Any, named: bool | None = None) -> Any:
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
        move_to_shared_memory(owner(storage._memory), storage, named=named)
        mapping = shared_memory.mapping_of(owner(storage._memory))
    return mapping


def new_shared_memory(size: int) -> np.ndarray:
    """An array of `size` bytes in shared memory."""
    from ...runtime import shared_memory

    return shared_memory.create(size, named=shared_memory.get_strategy() == "file_system")


def resize_storage(storage: Any, size: int) -> None:
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
        elif issubclass(kind, SharedStorage) and each is not storage and owner(each._memory) is old:
            each._memory = new
    for x in tensors:
        if x._array.size and np.lib.array_utils.byte_bounds(x._array)[1] - address(old) > size:
            raise NotImplementedError(f"a storage is resized to {size} bytes, and a tensor of shape {tuple(x.shape)} "
                                      "on it needs more")
    for x in tensors:
        x._array = moved_view(x._array, old, new)
    storage._memory = new


def refuse_to_pin(device: Any) -> None:
    """Raise PyTorch's error for memory that is to be pinned."""
    if device is not None:
        from ... import devices

        kind = devices.device(device).type
        if kind == "cpu":
            raise RuntimeError("CPU device type not an accelerator.")
        raise RuntimeError(f"Cannot pin memory for device {kind}: flambeau has no accelerator.")
    raise RuntimeError("Cannot access accelerator device when none is available.")


class PinnedMemory:
    """The methods of storages for pinned memory, which there is none of."""

    device: Any

    def pin_memory(self, device: Any = None) -> Any:
        """Not supported: memory is pinned for accelerators, and there are none.

        Raises:
            RuntimeError: always (PyTorch's text).
            TypeError: the storage is on meta (PyTorch's text).
        """
        if self.device is META:
            raise TypeError("cannot pin 'torch.storage.UntypedStorage' only CPU memory can be pinned")
        refuse_to_pin(device)

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the storage is in pinned memory: never."""
        return False


class SharedStorage(PinnedMemory):
    """The methods of a storage of bytes for shared memory and for its size."""

    _memory: Any  # an array; of a device's storage with `memory`
    _mapping: Any

    def is_shared(self) -> bool:
        """Whether the storage is in shared memory."""
        return self._mapping is not None or is_shared_array(self._memory)

    def share_memory_(self) -> Self:
        """Move the storage to shared memory, with all tensors on it; nothing happens if it is there.

        >>> import flambeau as torch
        >>> x = torch.ones(2)
        >>> _ = x.untyped_storage().share_memory_()
        >>> x.is_shared()
        True
        """
        share_storage(self)
        return self

    def resize_(self, size: int) -> Self:
        """Change the number of bytes, in place (`resize_storage`).

        >>> import flambeau as torch
        >>> torch.UntypedStorage([1, 2]).resize_(3).tolist()
        [1, 2, 0]
        """
        resize_storage(self, size)
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> Self:
        """A storage of `size` bytes in shared memory."""
        made: Self = cls._on(new_shared_memory(size))  # type: ignore[attr-defined]
        return made

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """Share the storage by a file descriptor, which stays the storage's: the descriptor, the number of bytes."""
        mapping = share_storage(self, named=False)
        return mapping.fd, mapping.size

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        """Share the storage by a name: the manager's, which there is none of, the memory's, and the number of bytes."""
        mapping = share_storage(self, named=True)
        return b"", mapping.name.encode(), mapping.size
