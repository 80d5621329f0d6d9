"""`torch.accelerator.memory`: the memory of an accelerator, where there is none: each function raises RuntimeError."""

from __future__ import annotations

from ..absent import refusing
from .absence import NONE

empty_cache = empty_host_cache = get_memory_info = refusing(RuntimeError, NONE)
memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = refusing(RuntimeError, NONE)
memory_stats = reset_accumulated_memory_stats = reset_peak_memory_stats = refusing(RuntimeError, NONE)

__all__ = ["empty_cache", "empty_host_cache", "get_memory_info", "max_memory_allocated", "max_memory_reserved",
           "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
           "reset_peak_memory_stats"]
