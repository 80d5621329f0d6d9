"""`torch.cuda` of a build without CUDA: it says so."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Whether tensors can be made on a GPU.

    >>> import flambeau as torch
    >>> torch.cuda.is_available()
    False
    """
    return False


def device_count() -> int:
    """The number of GPUs."""
    return 0


def is_initialized() -> bool:
    """Whether CUDA is in use."""
    return False


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("Torch not compiled with CUDA enabled")


current_device = get_device_name = get_device_properties = get_device_capability = set_device = current_stream = _refuse
synchronize = mem_get_info = _refuse


def empty_cache() -> None:
    """Nothing: there is no GPU memory to give back."""


def manual_seed(seed: int) -> None:
    """Nothing: there is no GPU generator to seed."""


def manual_seed_all(seed: int) -> None:
    """Nothing: there is no GPU generator to seed."""


def memory_allocated(device: Any = None) -> int:
    """Bytes held on the GPU: none."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Most bytes ever held on the GPU: none."""
    return 0
