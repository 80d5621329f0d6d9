"""The CUDA driver by ctypes: memory, modules of PTX, launches.

It needs NVIDIA's driver (`libcuda.so.1`) and nothing else; the driver's own assembler reads the PTX. It has never run
on a GPU: its tests use a driver that is written in Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernel_ir import Kernel
from ..nvptx import ptx
from ..nvptx.occupancy import DEFAULT_SHARED
from ..statements import Buffer

#: device attributes and the function attribute that raises the limit of dynamic shared memory
_MAJOR, _MINOR, _MAX_DYNAMIC_SHARED = 75, 76, 8
_CTYPES = {"b": ctypes.c_bool, "i": {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64},
           "u": {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64},
           "f": {4: ctypes.c_float, 8: ctypes.c_double}}


def architecture_of(major: int, minor: int) -> str:
    """The newest architecture whose code a device of this compute capability runs.

    Raises:
        RuntimeError: it is older than 8.0.

    >>> architecture_of(8, 7), architecture_of(10, 0)
    ('sm_86', 'sm_90')
    """
    fitting = [each for each in ptx.ARCHITECTURES if int(each[3:]) <= 10 * major + minor]
    if not fitting:
        raise RuntimeError(f"a GPU of compute capability {major}.{minor}: flambeau's kernels need 8.0 or newer")
    return fitting[-1]


class CudaDriver:
    """One GPU.

    Args:
        ordinal: its number.
        library: has the driver's functions; None: `libcuda.so.1`.

    Attributes:
        architecture: for which code is generated.

    Raises:
        OSError: there is no driver.
        RuntimeError: the driver refuses, or the GPU is too old.
    """

    def __init__(self, ordinal: int = 0, library: Any = None) -> None:
        self._library = ctypes.CDLL("libcuda.so.1") if library is None else library
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), ordinal)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        version = []
        for attribute in (_MAJOR, _MINOR):
            value = ctypes.c_int()
            self._call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
            version.append(value.value)
        self.architecture = architecture_of(*version)
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._modules: list[ctypes.c_void_p] = []

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"CUDA error: {(text.value or b'unknown').decode()} ({name} returned {status})")

    # ----- memory -----

    def allocate(self, size: int) -> int:
        """The address of new memory of so many bytes, aligned to 256."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def free(self, address: int) -> None:
        """Free memory."""
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address: int, array: np.ndarray) -> None:
        """Copy a contiguous array to the device."""
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(array.ctypes.data),
                   ctypes.c_size_t(array.nbytes))

    def read(self, address: int, array: np.ndarray) -> None:
        """Copy device memory into a contiguous array, after all that was launched."""
        self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(address),
                   ctypes.c_size_t(array.nbytes))

    # ----- kernels -----

    def load(self, kernels: Sequence[Kernel]) -> None:
        """Compile kernels that are not loaded yet, as one module."""
        missing = {kernel.name: kernel for kernel in kernels if kernel.name not in self._functions}
        if not missing:
            return
        source = ptx.compile_kernels(list(missing.values()), self.architecture).encode() + b"\0"
        module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(source))
        self._modules.append(module)
        for name, kernel in missing.items():
            function = ctypes.c_void_p()
            self._call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(name.encode()))
            if kernel.shared > DEFAULT_SHARED:
                self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, kernel.shared)
            self._functions[name] = function

    def launch(self, kernel: Kernel, grid: tuple[int, int, int], addresses: Sequence[int],
               scalars: Sequence[float] = ()) -> None:
        """Launch a kernel; errors of its run appear at the next synchronization.

        Args:
            kernel: the kernel.
            grid: the number of blocks in three dimensions.
            addresses: of its buffers.
            scalars: its other parameters.
        """
        self.load([kernel])
        left, numbers = iter(addresses), iter(scalars)
        values: list[Any] = []
        for parameter in kernel.parameters:
            if isinstance(parameter, Buffer):
                values.append(ctypes.c_uint64(next(left)))
            else:
                kind: Any = _CTYPES[parameter.dtype.kind]
                values.append((kind[parameter.dtype.itemsize] if isinstance(kind, dict) else kind)(next(numbers)))
        pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(each) for each in values])
        self._call("cuLaunchKernel", self._functions[kernel.name], *grid, kernel.threads, 1, 1, kernel.shared, None,
                   pointers, None)

    def synchronize(self) -> None:
        """Wait for all that was launched.

        Raises:
            RuntimeError: a kernel failed.
        """
        self._call("cuCtxSynchronize")


__all__ = ["CudaDriver", "architecture_of"]
