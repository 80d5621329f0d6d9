"""`torch.distributed._symmetric_memory`: memory that all processes address; a CPU has none, as in PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from .._tensor import Tensor
from ..c10d.process_group import ProcessGroup
from ..devices import device as device_of
from .groups.queries import _resolve_process_group

__all__ = ["empty", "get_backend", "get_mem_pool", "get_signal_pad_size", "is_nvshmem_available", "is_symm_mem_tensor",
           "reduce_scatter_offset", "rendezvous", "set_backend", "set_signal_pad_size"]

_signal_pad_size = 9216
_enabled: set[str] = set()


def _refuse(device: Any) -> NoReturn:
    raise RuntimeError(f"SymmetricMemory does not support device type {device_of(device).type}")


def empty(*size: Any, dtype: Any = None, device: Any = None) -> NoReturn:
    """Refuse: no device has symmetric memory.

    Args:
        size: the shape.
        dtype: the dtype.
        device: the device.

    Raises:
        RuntimeError: always (PyTorch's text).
    """
    _refuse("cpu" if device is None else device)


def rendezvous(tensor: Tensor, group: str | ProcessGroup) -> NoReturn:
    """Refuse: no tensor is in symmetric memory.

    Args:
        tensor: a tensor of each process.
        group: the processes, or their group's name.

    Raises:
        RuntimeError: always (PyTorch's text).
        TypeError: `group` is something else.
    """
    if not isinstance(group, (str, ProcessGroup)):
        raise TypeError(f"rendezvous: unsupported group type: {type(group)}")
    _refuse(tensor.device)


def reduce_scatter_offset(input: Tensor, out: list[Tensor], group: str, *, dim: int,
                          offsets: Sequence[int] | None = None, dst_ranks: Sequence[int] | None = None,
                          red_op: str = "sum") -> NoReturn:
    """Refuse: no tensor is in symmetric memory.

    Args:
        input, out, group, dim, offsets, dst_ranks, red_op: as in PyTorch.

    Raises:
        RuntimeError: always.
    """
    _refuse(input.device)


def is_symm_mem_tensor(tensor: Tensor) -> bool:
    """Whether a tensor is in symmetric memory: no.

    Args:
        tensor: the tensor.
    """
    return False


def is_nvshmem_available() -> bool:
    """Whether there is NVSHMEM: no.

    >>> from flambeau.distributed import _symmetric_memory
    >>> _symmetric_memory.is_nvshmem_available()
    False
    """
    return False


def set_backend(name: str) -> NoReturn:
    """Refuse: there is no allocator of symmetric memory.

    Args:
        name: the allocator.

    Raises:
        RuntimeError: always (PyTorch's text).
    """
    raise RuntimeError(f"SymmetricMemory does not find allocation backend {name}")


def get_backend(device: Any) -> None:
    """The allocator of a device: None.

    Args:
        device: the device.
    """
    device_of(device)


def get_mem_pool(device: Any) -> NoReturn:
    """Refuse: there is no allocator of symmetric memory.

    Args:
        device: the device.

    Raises:
        RuntimeError: always (PyTorch's text).
    """
    raise RuntimeError(f"SymmetricMemory MemPool did not find backend for device type {device_of(device).type}")


def set_signal_pad_size(size: int) -> None:
    """Set the bytes of the area of signals of what is allocated later.

    Args:
        size: the bytes.

    >>> from flambeau.distributed import _symmetric_memory
    >>> before = _symmetric_memory.get_signal_pad_size()
    >>> _symmetric_memory.set_signal_pad_size(1024)
    >>> _symmetric_memory.get_signal_pad_size()
    1024
    >>> _symmetric_memory.set_signal_pad_size(before)
    """
    global _signal_pad_size
    if not isinstance(size, int) or size < 0:
        raise TypeError(f"set_signal_pad_size(): the size must be an integer that is not negative, got {size!r}")
    _signal_pad_size = size


def get_signal_pad_size() -> int:
    """The bytes of the area of signals."""
    return _signal_pad_size


def enable_symm_mem_for_group(group_name: str) -> None:
    """Note that a group may use symmetric memory; deprecated.

    Args:
        group_name: the group's name.

    Raises:
        RuntimeError: there is no such group (PyTorch's text).
    """
    warnings.warn("`enable_symm_mem_for_group` is deprecated. There is no need to call this function anymore.",
                  FutureWarning, stacklevel=2)
    _resolve_process_group(group_name)
    _enabled.add(group_name)


def is_symm_mem_enabled_for_group(group_name: str) -> bool:
    """Whether `enable_symm_mem_for_group` was called.

    Args:
        group_name: the group's name.
    """
    return group_name in _enabled
