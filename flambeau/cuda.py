"""`torch.cuda` of a build without CUDA."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Whether a GPU is available: False.

    >>> import flambeau as torch
    >>> torch.cuda.is_available()
    False
    """
    return False


def device_count() -> int:
    """The number of GPUs: 0."""
    return 0


def is_initialized() -> bool:
    """Whether CUDA is initialized: False."""
    return False


def _no_cuda(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("Torch not compiled with CUDA enabled")


current_device = get_device_name = get_device_properties = get_device_capability = set_device = _no_cuda
current_stream = synchronize = mem_get_info = _no_cuda


def empty_cache() -> None:
    """No effect: there is no GPU memory to release."""


def manual_seed(seed: int) -> None:
    """No effect: there is no GPU generator."""


def manual_seed_all(seed: int) -> None:
    """No effect: there is no GPU generator."""


def memory_allocated(device: Any = None) -> int:
    """Bytes allocated on the GPU: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Peak of bytes allocated on the GPU: 0."""
    return 0
