"""`torch.cuda.memory`: the statistics of an allocator that is absent, and the error of a full one."""

from __future__ import annotations

from ..accelerators.absent import dummy_class, shared_names
from ..backends.cuda_devices.errors import OutOfMemoryError
from . import _names_of_device

globals().update({name: value for name, value in shared_names("cuda", "torch.cuda").items() if "mem" in name})
MemPool = dummy_class("MemPool", "torch.cuda.memory")
CUDAPluggableAllocator = dummy_class("CUDAPluggableAllocator", "torch.cuda.memory")
globals().update(_names_of_device(globals()))

__all__ = ["CUDAPluggableAllocator", "MemPool", "OutOfMemoryError"]
