"""cuBLAS without a GPU: the functions that flambeau calls, by NumPy, on the memory of `fake_cupy`.

Prototypes are those of CUDA 13's `cublas_api.h`. A handle belongs to the device on which it was made; products are
refused on a stream that is captured unless the handle has a workspace that lies in the device's memory.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from flambeau.dtypes import BFLOAT16, cast, widen
from tests.backends.cuda_devices.c_functions import c_function, store

_TYPES = {2: np.dtype("f2"), 14: BFLOAT16, 0: np.dtype("f4"), 1: np.dtype("f8"), 4: np.dtype("c8"), 5: np.dtype("c16")}
_OPAQUE = ("cublasHandle_t", "cudaStream_t")
#: computeType -> the types that it may have
_COMPUTES = {68: (2, 14, 0, 4), 77: (0, 4), 70: (1, 5)}
_INVALID, _NOT_INITIALIZED = 7, 1


def fake_cublas(state: Any) -> Any:
    """The library.

    Args:
        state: that of the module of `fake_cupy`; products are noted in its `products`.
    """
    handles: dict[int, SimpleNamespace] = {}

    @c_function("cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)", *_OPAQUE)
    def create(handle):
        number = 0x1000 + 16 * len(handles)
        handles[number] = SimpleNamespace(device=state.device, stream=0, workspace=0)
        store(handle, number)
        return 0

    @c_function("cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId)", *_OPAQUE)
    def set_stream(handle, stream):
        if handle not in handles:
            return _NOT_INITIALIZED
        handles[handle].stream, handles[handle].workspace = stream, 0
        return 0

    @c_function("cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, "
                "size_t workspaceSizeInBytes)", *_OPAQUE)
    def set_workspace(handle, workspace, size):
        if workspace % 256 or handle not in handles:
            return _INVALID
        state.bytes_at(workspace, size)
        handles[handle].workspace = workspace
        return 0

    def gemm(handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype,
             ldc, strideC, batchCount, computeType, algo):
        if handle not in handles:
            return _NOT_INITIALIZED
        its = handles[handle]
        assert its.device == state.device
        assert algo == -1
        assert its.stream not in state.capturing or its.workspace
        if Atype != Btype or Ctype not in (Atype, 0) or Atype not in _COMPUTES[computeType]:
            return _INVALID
        rows = (m if transa == 0 else k, k if transb == 0 else n)
        if lda < max(1, rows[0]) or ldb < max(1, rows[1]) or ldc < max(1, m):
            return _INVALID
        dtype = _TYPES[Atype]
        number = np.dtype({"f2": "f4", "V2": "f4"}.get(dtype.str[1:], dtype.str))
        factors = [np.ctypeslib.as_array((ctypes.c_uint8 * number.itemsize).from_address(each)).view(number)[0].copy()
                   for each in (alpha, beta)]
        state.products.append((m, n, k, batchCount, computeType))

        def column_major(address, rows, columns, leading, step, dtype=dtype):
            size = dtype.itemsize
            span = ((batchCount - 1) * step + (columns - 1) * leading + rows) * size
            data = state.bytes_at(address, span)
            return np.ndarray((batchCount, rows, columns), dtype, data, 0, (step * size, size, leading * size))

        def work():
            a = column_major(A, *((m, k) if transa == 0 else (k, m)), lda, strideA)
            b = column_major(B, *((k, n) if transb == 0 else (n, k)), ldb, strideB)
            made = _TYPES[Ctype]
            c = column_major(C, m, n, ldc, strideC, made)
            x, y = (np.swapaxes(each, 1, 2) if t else each for each, t in ((a, transa), (b, transb)))
            wide = widen if dtype == BFLOAT16 else lambda each: each.astype(number)
            result = factors[0] * np.matmul(wide(np.ascontiguousarray(x)), wide(np.ascontiguousarray(y)))
            if factors[1]:
                result = result + factors[1] * wide(np.ascontiguousarray(c))
            c[...] = cast(result, made) if made == BFLOAT16 else result

        state.submit(its.stream, work)
        return 0

    @c_function("cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t "
                "transb, int64_t m, int64_t n, int64_t k, const void* alpha, const void* A, cudaDataType Atype, "
                "int64_t lda, const void* B, cudaDataType Btype, int64_t ldb, const void* beta, void* C, "
                "cudaDataType Ctype, int64_t ldc, cublasComputeType_t computeType, cublasGemmAlgo_t algo)", *_OPAQUE)
    def gemm_ex(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc, computeType,
                algo):
        return gemm(handle, transa, transb, m, n, k, alpha, A, Atype, lda, 0, B, Btype, ldb, 0, beta, C, Ctype, ldc, 0,
                    1, computeType, algo)

    @c_function("cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t transa, "
                "cublasOperation_t transb, int64_t m, int64_t n, int64_t k, const void* alpha, const void* A, "
                "cudaDataType Atype, int64_t lda, long long int strideA, const void* B, cudaDataType Btype, "
                "int64_t ldb, long long int strideB, const void* beta, void* C, cudaDataType Ctype, int64_t ldc, "
                "long long int strideC, int64_t batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t algo)",
                *_OPAQUE)
    def gemm_strided_batched_ex(*args):
        return gemm(*args)

    return SimpleNamespace(**{each.name: each for each in (create, set_stream, set_workspace, gemm_ex,
                                                           gemm_strided_batched_ex)})
