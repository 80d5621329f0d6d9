"""cuBLASLt without a GPU: products with a bias, by NumPy, on the memory of `fake_cupy`.

Prototypes are those of CUDA 13's `cublasLt.h`. An algorithm serves the description, layouts and alignments that it was
asked for, and no others.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from flambeau.dtypes import BFLOAT16, cast, widen
from tests.backends.cuda_devices.c_functions import c_function, store

_TYPES = {2: np.dtype("f2"), 14: BFLOAT16, 0: np.dtype("f4")}
_OPAQUE = ("cublasLtHandle_t", "cublasLtMatmulDesc_t", "cublasLtMatrixLayout_t", "cublasLtMatmulPreference_t",
           "cudaStream_t")
_INVALID, _UNSUPPORTED = 7, 15
_SIZES = {3: 4, 4: 4, 7: 4, 8: 8}


def fake_cublaslt(state: Any) -> Any:
    """The library.

    Args:
        state: that of the module of `fake_cupy`; products are noted in its `biased`.
    """
    made: dict[int, SimpleNamespace] = {}
    state.biased = []

    def new(kind: str, at: int, **values: Any) -> int:
        number = 0x100000 + 16 * len(made)
        made[number] = SimpleNamespace(kind=kind, **values)
        store(at, number)
        return 0

    @c_function("cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle)", *_OPAQUE)
    def create(at):
        return new("handle", at, device=state.device)

    @c_function("cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmulDesc, cublasComputeType_t "
                "computeType, cudaDataType_t scaleType)", *_OPAQUE)
    def create_description(at, compute, scale):
        return _INVALID if compute not in (68, 77) or scale else new("product", at, compute=compute, attributes={})

    @c_function("cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc, "
                "cublasLtMatmulDescAttributes_t attr, const void* buf, size_t sizeInBytes)", *_OPAQUE)
    def describe(description, attribute, at, size):
        if _SIZES.get(attribute) != size:
            return _INVALID
        made[description].attributes[attribute] = int.from_bytes(ctypes.string_at(at, size), "little")
        return 0

    @c_function("cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matLayout, cudaDataType type, "
                "uint64_t rows, uint64_t cols, int64_t ld)", *_OPAQUE)
    def create_layout(at, kind, rows, columns, distance):
        return _INVALID if distance < rows else new("layout", at, type=kind, rows=rows, columns=columns,
                                                    distance=distance)

    @c_function("cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* pref)", *_OPAQUE)
    def create_preference(at):
        return new("preference", at, attributes={})

    @c_function("cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref, "
                "cublasLtMatmulPreferenceAttributes_t attr, const void* buf, size_t sizeInBytes)", *_OPAQUE)
    def prefer(preference, attribute, at, size):
        if {1: 8, 5: 4, 6: 4, 7: 4, 8: 4}.get(attribute) != size:
            return _INVALID
        made[preference].attributes[attribute] = int.from_bytes(ctypes.string_at(at, size), "little")
        return 0

    @c_function("cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t "
                "operationDesc, cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t "
                "Cdesc, cublasLtMatrixLayout_t Ddesc, cublasLtMatmulPreference_t preference, int requestedAlgoCount, "
                "cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int* returnAlgoCount)", *_OPAQUE)
    def search(handle, description, a, b, c, d, preference, wanted, results, count):
        wishes = made[preference].attributes
        if made[handle].device != state.device or wanted != 1 or c != d:
            return _UNSUPPORTED
        its = made[description]
        its.bias_alignment = its.attributes[8] & -its.attributes[8]  # an address of 0 would say nothing
        words = (ctypes.c_uint64 * 12).from_address(results)  # 96 bytes: the algorithm's 8 words, then the workspace's
        words[:9] = [description, a, b, d, *(wishes[i] for i in (5, 6, 7, 8)), wishes[1]]
        words[9] = 0
        store(count, 1, ctypes.c_int)
        return 0

    @c_function("cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc, const "
                "void* alpha, const void* A, cublasLtMatrixLayout_t Adesc, const void* B, cublasLtMatrixLayout_t "
                "Bdesc, const void* beta, const void* C, cublasLtMatrixLayout_t Cdesc, void* D, "
                "cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo, void* workspace, size_t "
                "workspaceSizeInBytes, cudaStream_t stream)", *_OPAQUE)
    def multiply(handle, description, alpha, a_at, a, b_at, b, beta, c_at, c, d_at, d, algorithm, workspace, size,
                 stream):
        words = list((ctypes.c_uint64 * 8).from_address(algorithm))
        assert words[:4] == [description, a, b, d]
        for address, alignment in zip((a_at, b_at, c_at, d_at), words[4:], strict=True):
            assert address % alignment == 0
        assert made[handle].device == state.device
        assert (c, c_at) == (d, d_at)
        assert not size
        given = made[description].attributes
        assert given[7] == 4  # CUBLASLT_EPILOGUE_BIAS
        first, second, result = (made[each] for each in (a, b, d))
        assert [ctypes.c_float.from_address(each).value for each in (alpha, beta)] == [1, 0]
        if first.type != second.type or result.type not in (first.type, 0):
            return _UNSUPPORTED
        bias_at = given[8]
        assert bias_at % made[description].bias_alignment == 0
        state.biased.append((result.rows, result.columns, made[description].compute))

        def matrix(layout, address):
            dtype = _TYPES[layout.type]
            size = dtype.itemsize
            data = state.bytes_at(address, ((layout.columns - 1) * layout.distance + layout.rows) * size)
            return np.ndarray((layout.rows, layout.columns), dtype, data, 0, (size, layout.distance * size))

        def wide(array):
            return widen(np.ascontiguousarray(array)) if array.dtype == BFLOAT16 else array.astype("f4")

        def work():
            x, y = (wide(matrix(layout, at)) for layout, at in ((first, a_at), (second, b_at)))
            out = matrix(result, d_at)
            bias = state.bytes_at(bias_at, result.rows * out.dtype.itemsize).view(out.dtype)
            sums = (x.T if given[3] else x) @ (y.T if given[4] else y) + wide(bias)[:, None]
            out[...] = cast(np.ascontiguousarray(sums), out.dtype) if out.dtype == BFLOAT16 else sums

        state.submit(stream, work)
        return 0

    return SimpleNamespace(**{each.name: each for each in (
        create, create_description, describe, create_layout, create_preference, prefer, search, multiply)})
