"""cuFFT without a GPU: the functions that flambeau calls, by NumPy, on the memory of `fake_cupy`.

Prototypes are those of CUDA 13's `cufft.h`. A plan has a workspace that must be set before it is executed.
"""

from __future__ import annotations

import ctypes
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.backends.cuda_devices.c_functions import c_function, store

#: type of a plan -> dtypes of the elements of the source and of the target
_TYPES = {0x29: ("c8", "c8"), 0x2A: ("f4", "c8"), 0x2C: ("c8", "f4"), 0x69: ("c16", "c16"), 0x6A: ("f8", "c16"),
          0x6C: ("c16", "f8")}
_OPAQUE = ("cudaStream_t",)
_INVALID_PLAN, _INVALID_VALUE, _INVALID_SIZE = 1, 4, 8
_WORKSPACE = 4096


def fake_cufft(state: Any) -> Any:
    """The library.

    Args:
        state: that of the module of `fake_cupy`.
    """
    plans: dict[int, SimpleNamespace] = {}

    @c_function("cufftResult cufftCreate(cufftHandle * handle)")
    def create(handle):
        number = len(plans) + 1
        plans[number] = SimpleNamespace(device=state.device, automatic=True, kind=0, stream=0, workspace=0)
        store(handle, number, ctypes.c_int)
        return 0

    @c_function("cufftResult cufftDestroy(cufftHandle plan)")
    def destroy(plan):
        return 0 if plans.pop(plan, None) else _INVALID_PLAN

    @c_function("cufftResult cufftSetAutoAllocation(cufftHandle plan, int autoAllocate)")
    def set_auto_allocation(plan, automatic):
        plans[plan].automatic = bool(automatic)
        return 0

    @c_function("cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long int *n, long long int *inembed, "
                "long long int istride, long long int idist, long long int *onembed, long long int ostride, "
                "long long int odist, cufftType type, long long int batch, size_t* workSize)")
    def make_plan(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, kind, batch, size):
        its = plans[plan]
        assert not its.automatic
        its.layout = None
        if inembed:
            longs = [[int(ctypes.c_longlong.from_address(each + 8 * i).value) for i in range(rank)]
                     for each in (inembed, onembed)]
            assert ostride == 1
            assert odist == prod(longs[1])
            its.layout = longs[0], istride, idist, longs[1]
        if not 1 <= rank <= 3 or batch < 1 or kind not in _TYPES:
            return _INVALID_VALUE
        its.sizes = [int(ctypes.c_longlong.from_address(n + 8 * i).value) for i in range(rank)]
        if min(its.sizes) < 1:
            return _INVALID_SIZE
        its.kind, its.batch = kind, batch
        store(size, _WORKSPACE, ctypes.c_size_t)
        return 0

    @c_function("cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream)", *_OPAQUE)
    def set_stream(plan, stream):
        plans[plan].stream = stream
        return 0

    @c_function("cufftResult cufftSetWorkArea(cufftHandle plan, void *workArea)")
    def set_work_area(plan, area):
        state.bytes_at(area, _WORKSPACE)
        plans[plan].workspace = area
        return 0

    def execute(kinds, plan, source, target, direction=None):
        its = plans[plan]
        assert its.kind in kinds
        assert its.workspace
        assert its.device == state.device
        whole = (its.batch, *its.sizes)
        half = (*whole[:-1], whole[-1] // 2 + 1)
        from_dtype, to_dtype = (np.dtype(each) for each in _TYPES[its.kind])

        def array(address, dtype, other):
            shape = half if dtype.kind == "c" and other.kind == "f" else whole
            assert not address % max(each.itemsize for each in (from_dtype, to_dtype))
            return np.ndarray(shape, dtype, state.bytes_at(address, prod(shape) * dtype.itemsize))

        def strided():
            embed, step, distance, results = its.layout
            assert not source % max(each.itemsize for each in (from_dtype, to_dtype))
            strides = [step * prod(embed[i + 1:]) for i in range(len(embed))]
            shape = (its.batch, *its.sizes)
            reach = (its.batch - 1) * distance + sum((n - 1) * s for n, s in zip(its.sizes, strides, strict=True)) + 1
            assert results[-1] == (half if from_dtype.kind == "f" else whole)[-1]
            return np.ndarray(shape, from_dtype, state.bytes_at(source, reach * from_dtype.itemsize), 0,
                              [s * from_dtype.itemsize for s in (distance, *strides)])

        def work():
            x = strided() if its.layout else array(source, from_dtype, to_dtype)
            out = array(target, to_dtype, from_dtype)
            axes = tuple(range(1, x.ndim))
            if from_dtype.kind == "f":
                out[...] = np.fft.rfftn(x, axes=axes, norm="backward")
            elif to_dtype.kind == "f":
                out[...] = np.fft.irfftn(x.copy(), s=its.sizes, axes=axes, norm="forward")
                x[...] = np.nan  # it is overwritten
            elif direction == -1:
                out[...] = np.fft.fftn(x, axes=axes, norm="backward")
            else:
                assert direction == 1
                out[...] = np.fft.ifftn(x, axes=axes, norm="forward")
            state.bytes_at(its.workspace, _WORKSPACE)[...] = 0xEE

        state.submit(its.stream, work)
        return 0

    made = [create, destroy, set_auto_allocation, make_plan, set_stream, set_work_area]
    for name, kind in (("C2C", 0x29), ("Z2Z", 0x69)):
        made.append(c_function(f"cufftResult cufftExec{name}(cufftHandle plan, cufftComplex *idata, cufftComplex "
                               "*odata, int direction)")(lambda *args, kind=kind: execute((kind,), *args)))
    for name, kind in (("R2C", 0x2A), ("D2Z", 0x6A), ("C2R", 0x2C), ("Z2D", 0x6C)):
        made.append(c_function(f"cufftResult cufftExec{name}(cufftHandle plan, cufftReal *idata, cufftComplex *odata)")(
            lambda *args, kind=kind: execute((kind,), *args)))
    return SimpleNamespace(**{each.name: each for each in made})
