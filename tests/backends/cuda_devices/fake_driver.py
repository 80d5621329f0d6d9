"""CUDA's driver without a GPU: the functions that flambeau calls by their addresses, on the module of `fake_cupy`.

Prototypes are those of `cuda.h`.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from flambeau.codegen.gpu.statements import Buffer
from tests.backends.cuda_devices.c_functions import c_function, store

_OPAQUE = ("CUfunction", "CUstream", "CUcontext", "CUdeviceptr")
_TEXTS = {1: b"invalid argument", 700: b"an illegal memory access was encountered"}
#: the context of device i is _CONTEXT + i
_CONTEXT = 0x5000


def fake_driver(state: Any) -> Any:
    """The library.

    Args:
        state: that of the module of `fake_cupy`.
    """
    texts = {status: ctypes.create_string_buffer(text) for status, text in _TEXTS.items()}

    def refused(work):
        try:
            work()
        except RuntimeError as error:
            status: int = error.status  # type: ignore[attr-defined]
            return status
        return 0

    @c_function("CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int "
                "gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int "
                "sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)", *_OPAQUE)
    def launch(function, x, y, z, threads, one, also_one, shared, stream, parameters, extra):
        found = state.functions.get(function)
        if found is None or one != 1 or also_one != 1 or extra:
            return 1
        values = []
        for number, parameter in enumerate(found.kernel.parameters):
            kind = np.dtype(np.uint64) if isinstance(parameter, Buffer) else parameter.dtype
            raw = ctypes.string_at(ctypes.c_void_p.from_address(parameters + 8 * number).value, kind.itemsize)
            values.append(np.frombuffer(raw, kind)[0])
        current = SimpleNamespace(ptr=stream)
        return refused(lambda: found((x, y, z), (threads, 1, 1), values, shared, current))

    @c_function("CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, "
                "CUstream hStream)", *_OPAQUE)
    def copy(target, source, size, stream):
        def work():
            to, of = (state.bytes_at(address, size).ctypes.data for address in (target, source))
            ctypes.memmove(to, of, size)

        return refused(lambda: state.submit(stream, work))

    def to_host(target, source, size, stream):
        def work():
            ctypes.memmove(target, state.bytes_at(source, size).ctypes.data, size)

        return refused(lambda: state.submit(stream, work))

    @c_function("CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)", *_OPAQUE)
    def copy_to_host(target, source, size):
        return to_host(target, source, size, 0)

    @c_function("CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, "
                "CUstream hStream)", *_OPAQUE)
    def start_copy_to_host(target, source, size, stream):
        return to_host(target, source, size, stream)

    @c_function("CUresult cuStreamSynchronize(CUstream hStream)", *_OPAQUE)
    def synchronize(stream):
        return refused(lambda: state.submit(stream, lambda: None))

    @c_function("CUresult cuCtxGetCurrent(CUcontext *pctx)", *_OPAQUE)
    def get_context(context):
        store(context, _CONTEXT + state.device)
        return 0

    @c_function("CUresult cuCtxSetCurrent(CUcontext ctx)", *_OPAQUE)
    def set_context(context):
        if not 0 <= context - _CONTEXT < state.count:
            return 1
        state.device = context - _CONTEXT
        return 0

    @c_function("CUresult cuGetErrorString(CUresult error, const char **pStr)", *_OPAQUE)
    def error_string(error, text):
        if error not in texts:
            return 1
        store(text, ctypes.addressof(texts[error]))
        return 0

    return SimpleNamespace(cuLaunchKernel=launch, cuMemcpyDtoDAsync_v2=copy, cuMemcpyDtoH_v2=copy_to_host,
                           cuMemcpyDtoHAsync_v2=start_copy_to_host, cuStreamSynchronize=synchronize,
                           cuCtxGetCurrent=get_context,
                           cuCtxSetCurrent=set_context, cuGetErrorString=error_string)


__all__ = ["fake_driver"]
