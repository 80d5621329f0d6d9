"""A CUDA driver in Python: memory is the host's, and launches run on the emulator.

Modules are known by their entry points: `kernels` has the kernels that PTX may name.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np

from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.gpu.statements import Buffer


class FakeDriver:
    """The functions that `CudaDriver` calls. A launch with an address outside all memory fails."""

    def __init__(self, kernels: Any, capability: tuple[int, int] = (8, 0)) -> None:
        self.kernels, self.capability = {each.name: each for each in kernels}, capability
        self.memory: dict[int, np.ndarray] = {}
        self.loaded: dict[int, Any] = {}
        self.attributes: list[tuple[int, int]] = []
        self.launched: list[str] = []

    def cuInit(self, flags):
        return 0

    def cuDeviceGet(self, device, ordinal):
        return 0 if ordinal == 0 else 101

    def cuDevicePrimaryCtxRetain(self, context, device):
        return 0

    def cuCtxSetCurrent(self, context):
        return 0

    def cuCtxSynchronize(self):
        return 0

    def cuDeviceGetAttribute(self, value, attribute, device):
        value._obj.value = self.capability[attribute - 75]
        return 0

    def cuGetErrorString(self, status, text):
        text._obj.value = {101: b"invalid device ordinal", 700: b"an illegal memory access was encountered"}[status]
        return 0

    def cuMemAlloc_v2(self, address, size):
        array = np.zeros(size.value + 256, np.uint8)
        first = -(-array.ctypes.data // 256) * 256
        self.memory[first] = array[first - array.ctypes.data:][:size.value]
        address._obj.value = first
        return 0

    def cuMemFree_v2(self, address):
        del self.memory[address.value]
        return 0

    def cuMemcpyHtoD_v2(self, address, source, size):
        ctypes.memmove(address.value, source.value, size.value)
        return 0

    def cuMemcpyDtoH_v2(self, target, address, size):
        ctypes.memmove(target.value, address.value, size.value)
        return 0

    def cuModuleLoadData(self, module, source):
        self.entries = re.findall(rb"\.visible \.entry (\w+)", source.value)
        return 0

    def cuModuleGetFunction(self, function, module, name):
        assert name.value in self.entries
        function._obj.value = len(self.loaded) + 1
        self.loaded[len(self.loaded) + 1] = self.kernels[name.value.decode()]
        return 0

    def cuFuncSetAttribute(self, function, attribute, value):
        self.attributes.append((attribute, value))
        return 0

    def cuLaunchKernel(self, function, x, y, z, threads, one, other, shared, stream, pointers, extra):
        kernel = self.loaded[function.value]
        assert (threads, one, other, shared) == (kernel.threads, 1, 1, kernel.shared)
        arguments: list[Any] = []
        for parameter, pointer in zip(kernel.parameters, pointers, strict=False):
            if not isinstance(parameter, Buffer):
                raw = (ctypes.c_char * parameter.dtype.itemsize).from_address(pointer)
                arguments.append(np.frombuffer(raw.raw, parameter.dtype)[0])
                continue
            address = ctypes.c_uint64.from_address(pointer).value
            first = max((each for each in self.memory if each <= address), default=0)
            if not first or address > first + len(self.memory[first]):
                return 700
            memory = self.memory[first]
            size = parameter.dtype.itemsize
            whole = memory[:len(memory) // size * size].view(parameter.dtype)
            arguments.append(emulator.View(whole, (address - first) // size))
        self.launched.append(kernel.family)
        emulator.run(kernel, (x, y, z), arguments)
        return 0
