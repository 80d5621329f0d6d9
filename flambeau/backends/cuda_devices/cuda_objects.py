"""What the runtime on CuPy hands out (memory, points in time, captured graphs), and what it calls of CUDA's driver."""

from __future__ import annotations

import ctypes
import time
from typing import Any

_POINTER, _SIZE, _NUMBER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
#: the functions of `cuda.h` that are called, with the types of their parameters
DRIVER: dict[str, tuple[Any, ...]] = {
    "cuLaunchKernel": (_POINTER, *(_NUMBER,) * 7, _POINTER, _POINTER, _POINTER),
    "cuMemcpyDtoDAsync_v2": (_POINTER, _POINTER, _SIZE, _POINTER),
    "cuMemcpyDtoH_v2": (_POINTER, _POINTER, _SIZE),
    "cuMemcpyDtoHAsync_v2": (_POINTER, _POINTER, _SIZE, _POINTER),
    "cuStreamSynchronize": (_POINTER,),
    "cuCtxGetCurrent": (_POINTER,), "cuCtxSetCurrent": (_POINTER,),
    "cuGetErrorString": (ctypes.c_int, _POINTER),
}


class GpuMemory:
    """Memory of a GPU."""

    __slots__ = ("address", "device", "size")

    def __init__(self, device: int, at: int, size: int) -> None:
        self.device, self.address, self.size = device, at, size


class ForeignStream:
    """A stream that another library has made, by CUDA's protocol of streams."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


class Point:
    """A recorded event."""

    __slots__ = ("device", "event", "seconds")

    def __init__(self, device: int, event: Any) -> None:
        self.device, self.event, self.seconds = device, event, time.perf_counter()


class Capture:
    """A graph that is being captured.

    Attributes:
        replayed_on: the stream that alone will replay it; None: any.
        kept: memory that lives as long as the graph: what its copies read, workspaces.
    """

    def __init__(self, replayed_on: int | None) -> None:
        self.replayed_on = replayed_on
        self.kept: list[Any] = []


__all__ = ["DRIVER", "Capture", "ForeignStream", "GpuMemory", "Point"]
