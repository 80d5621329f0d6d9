"""Matrix products on a GPU by cuBLAS, through CuPy's functions for its handle and its `Ex` routines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import BFLOAT16
from .runtime import Place, Product

#: dtypes of elements -> (CUDA's name, cuBLAS's name of the precision of sums, the dtype of alpha and beta)
_TYPES: dict[np.dtype, tuple[str, str, str]] = {
    np.dtype(np.float16): ("CUDA_R_16F", "CUBLAS_COMPUTE_32F", "f4"),
    BFLOAT16: ("CUDA_R_16BF", "CUBLAS_COMPUTE_32F", "f4"),
    np.dtype(np.float32): ("CUDA_R_32F", "CUBLAS_COMPUTE_32F", "f4"),
    np.dtype(np.float64): ("CUDA_R_64F", "CUBLAS_COMPUTE_64F", "f8"),
    np.dtype(np.complex64): ("CUDA_C_32F", "CUBLAS_COMPUTE_32F", "c8"),
    np.dtype(np.complex128): ("CUDA_C_64F", "CUBLAS_COMPUTE_64F", "c16"),
}
DTYPES = frozenset(_TYPES)


def multiply(cuda: Any, product: Product, address_of: Callable[[Place], int]) -> None:
    """Start a batch of products on CuPy's current stream.

    cuBLAS has matrices column by column, so it is given the transposed product: B's columns times A's rows.

    Args:
        cuda: the module `cupy.cuda`.
        product: the product.
        address_of: gives the address of a place.
    """
    blas = cuda.cublas
    kind, precision, numbers = _TYPES[product.dtype]
    if product.tf32 and product.dtype == np.float32:
        precision = "CUBLAS_COMPUTE_32F_FAST_TF32"
    element, compute = getattr(cuda.runtime, kind), getattr(blas, precision)
    result = element if product.out is None else getattr(cuda.runtime, _TYPES[product.out][0])
    alpha, beta = np.array(product.alpha, numbers), np.array(product.beta, numbers)
    operation = [blas.CUBLAS_OP_T if each else blas.CUBLAS_OP_N for each in product.transposed]
    a, b, c = (address_of(each) for each in (product.a, product.b, product.c))
    handle = cuda.get_cublas_handle()
    if product.batch == 1:
        blas.gemmEx(handle, operation[1], operation[0], product.n, product.m, product.k, alpha.ctypes.data,
                    b, element, product.rows[1], a, element, product.rows[0], beta.ctypes.data,
                    c, result, product.rows[2], compute, blas.CUBLAS_GEMM_DEFAULT)
        return
    blas.gemmStridedBatchedEx(handle, operation[1], operation[0], product.n, product.m, product.k, alpha.ctypes.data,
                              b, element, product.rows[1], product.steps[1], a, element, product.rows[0],
                              product.steps[0], beta.ctypes.data, c, result, product.rows[2], product.steps[2],
                              product.batch, compute, blas.CUBLAS_GEMM_DEFAULT)


__all__ = ["DTYPES", "multiply"]
