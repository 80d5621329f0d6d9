"""`torch.xpu` of a build without Intel GPUs."""

from __future__ import annotations

import sys
from typing import Any

from .absent import dummy_class, refusing, shared_names

globals().update(shared_names("xpu", "torch.xpu", NotImplementedError))
set_device = refusing(AssertionError, "Torch not compiled with XPU enabled")
reset_peak_memory_stats = refusing(AttributeError, "module 'torch._C' has no attribute '_xpu_resetPeakMemoryStats'")
reset_accumulated_memory_stats = refusing(
    AttributeError, "module 'torch._C' has no attribute '_xpu_resetAccumulatedMemoryStats'")
is_current_stream_capturing = refusing(
    RuntimeError, "Tried to instantiate dummy base class _xpu_isCurrentStreamCapturing")
graph_pool_handle = refusing(RuntimeError, "Tried to instantiate dummy base class _xpu_graph_pool_handle")
Stream, Event, XPUGraph, MemPool = (dummy_class(name, "torch.xpu") for name in (
    "Stream", "Event", "XPUGraph", "MemPool"))
memory = random = streams = sys.modules[__name__]  # PyTorch's submodules, which hold these names


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """The capabilities of a device.

    Raises:
        AssertionError: always.
    """
    raise AssertionError("Torch not compiled with XPU enabled")
