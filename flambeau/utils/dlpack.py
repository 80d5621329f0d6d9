"""`torch.utils.dlpack`: tensors and arrays of other libraries that share memory."""

from __future__ import annotations

import enum

from .._tensor.memory.dlpack import from_dlpack, to_dlpack


class DLDeviceType(enum.IntEnum):
    """The types of devices by their numbers in DLPack.

    >>> import flambeau as torch
    >>> torch.ones(2).__dlpack_device__()
    (<DLDeviceType.kDLCPU: 1>, 0)
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
