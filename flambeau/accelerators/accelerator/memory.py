"""`torch.accelerator.memory`: the memory of the CUDA devices; without one, each function raises RuntimeError."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ...backends.cuda_devices import current_runtime
from .absence import NONE


def _of_cuda(name: str, summary: str) -> Callable[..., Any]:
    """A function of `torch.cuda` under its name here."""
    def call(*args: Any, **kwargs: Any) -> Any:
        if current_runtime() is None:
            raise RuntimeError(NONE)
        return getattr(importlib.import_module(f"{__name__.split('.')[0]}.cuda"), name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{summary}\n\n    Raises:\n        RuntimeError: there is no accelerator.\n    "
    return call


empty_cache = _of_cuda("empty_cache", "Give memory that no tensor occupies back to the devices.")
empty_host_cache = _of_cuda("ipc_collect", "Nothing is left to do: pinned memory is not cached.")
get_memory_info = _of_cuda("mem_get_info", "(free bytes, all bytes) of a device.")
memory_allocated = _of_cuda("memory_allocated", "The bytes that tensors occupy.")
max_memory_allocated = _of_cuda("max_memory_allocated", "The most bytes that tensors have occupied.")
memory_reserved = _of_cuda("memory_reserved", "The bytes that the allocator holds.")
max_memory_reserved = _of_cuda("max_memory_reserved", "The most bytes that the allocator has held.")
memory_stats = _of_cuda("memory_stats", "All statistics of the allocator.")
reset_accumulated_memory_stats = _of_cuda("reset_accumulated_memory_stats", "Let the totals begin at zero.")
reset_peak_memory_stats = _of_cuda("reset_peak_memory_stats", "Let the peaks begin at the present values.")

__all__ = ["empty_cache", "empty_host_cache", "get_memory_info", "max_memory_allocated", "max_memory_reserved",
           "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
           "reset_peak_memory_stats"]
