"""Matmuls that always use BLAS where possible, vector norms, and cumulative reductions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import dtypes

EXACT_WORK = 1 << 15  # multiplications from which integer matmuls are faster in float64
EXACT_LIMIT = 1 << 53


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Matmul with `numpy.matmul`'s shapes: vectors, matrices, and broadcast batches.

    Half precision accumulates in single and rounds once; integers wrap.
    """
    dtype = a.dtype
    if dtype in dtypes.NARROW:
        return dtypes.cast(matmul(dtypes.widen(a), dtypes.widen(b)), dtype)
    if dtype.kind in "iu":
        return _integer_matmul(a, b)
    if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous:
        # one tall GEMM instead of a batch of short ones
        return (a.reshape(-1, a.shape[-1]) @ _blas_ready(b)).reshape(*a.shape[:-1], b.shape[1]) if a.size \
            else np.zeros((*a.shape[:-1], b.shape[1]), np.result_type(a, b))
    if a.ndim > 1:
        a = _blas_ready(a)
    if b.ndim > 1:
        b = _blas_ready(b)
    return np.asarray(np.matmul(a, b))


def _blas_ready(a: np.ndarray) -> np.ndarray:
    """The array itself if BLAS can read its matrices in place, else a copy.

    One of the last two axes must be dense and the other one must step over whole rows.
    """
    if a.flags.c_contiguous:
        return a
    rows, columns = a.strides[-2:]
    m, n = a.shape[-2:]
    item = a.itemsize
    if columns == item and rows >= n * item and rows % item == 0:
        return a
    if rows == item and columns >= m * item and columns % item == 0:
        return a
    return np.ascontiguousarray(a)


def _integer_matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer matmul, in float64 (BLAS) where all sums are exact there."""
    if a.size * (b.shape[-1] if b.ndim > 1 else 1) >= EXACT_WORK and b.size:
        bound = _magnitude(a) * _magnitude(b) * a.shape[-1]
        if bound < EXACT_LIMIT:
            exact = matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
            return exact.astype(a.dtype, copy=False)
    return np.asarray(np.matmul(a, b))


def _magnitude(a: np.ndarray) -> int:
    return max(int(a.max()), -int(a.min()))


def vector_norm(x: np.ndarray, p: float = 2.0, axes: Sequence[int] | None = None,
                keepdims: bool = False) -> np.ndarray:
    """``(sum of abs(x)^p)^(1/p)`` over the axes (None: all), of x's real dtype.

    Order 0 counts nonzero elements; plus and minus infinity are the largest and smallest magnitude.

    Raises:
        RuntimeError: a reduced axis is empty and the order, negative or infinite, has no identity.
    """
    if x.dtype in dtypes.NARROW:
        return dtypes.cast(vector_norm(dtypes.widen(x), p, axes, keepdims), x.dtype)
    dims = tuple(range(x.ndim)) if axes is None or len(axes) == 0 else tuple(a % max(x.ndim, 1) for a in axes)
    dims = dims if x.ndim else ()
    if p < 0 or p == np.inf:
        _require_identity(x, p, dims, everything=len(dims) == x.ndim)
    real = x.real.dtype
    if p == 2:
        if x.dtype.kind == "f" and len(dims) == x.ndim and x.flags.c_contiguous and x.size:
            flat = x.reshape(-1)
            total = np.sqrt(np.dot(flat, flat)).astype(real)
            return np.full((1,) * x.ndim if keepdims else (), total)
        squares = x * x if x.dtype.kind == "f" else x.real * x.real + x.imag * x.imag
        return np.asarray(np.sqrt(squares.sum(dims, keepdims=keepdims)), real)
    if p == 0:
        return np.asarray((x != 0).sum(dims, dtype=real, keepdims=keepdims))
    a = np.abs(x)
    if p == 1:
        return np.asarray(a.sum(dims, keepdims=keepdims))
    if p == np.inf:
        return np.asarray(a.max(dims, keepdims=keepdims))
    if p == -np.inf:
        return np.asarray(a.min(dims, keepdims=keepdims))
    order = real.type(p)
    return np.asarray((a**order).sum(dims, keepdims=keepdims) ** (real.type(1) / order), real)


def _require_identity(x: np.ndarray, p: float, dims: tuple[int, ...], everything: bool) -> None:
    if everything:
        if x.size == 0:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {p:g} norm on an empty tensor because "
                               "the operation does not have an identity")
        return
    for dim in dims:
        if x.shape[dim] == 0:
            # PyTorch's text lacks this space too
            raise RuntimeError(f"linalg.vector_norm cannot compute the {p:g} norm on the dimension {dim}because "
                               "this dimension is empty and the operation does not have an identity")


def cummax(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Running maximum and its index, the latest of equals; the first NaN stays, the latest of several."""
    return _running(x, axis, np.maximum)


def cummin(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Running minimum and its index; ties and NaN as in `cummax`."""
    return _running(x, axis, np.minimum)


def _running(x: np.ndarray, axis: int, extremum: np.ufunc) -> tuple[np.ndarray, np.ndarray]:
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    wide = dtypes.widen(x)
    best = extremum.accumulate(wide, axis)
    fresh = wide == best
    if wide.dtype.kind == "f":
        fresh |= np.isnan(wide)
    places = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - 1 - axis % x.ndim))
    indices = np.maximum.accumulate(np.where(fresh, places, 0), axis)
    return np.take_along_axis(x, indices, axis), indices


def logcumsumexp(x: np.ndarray, axis: int) -> np.ndarray:
    """``log(cumsum(exp(x)))`` without overflow."""
    if x.ndim == 0:
        return x.copy()
    if x.dtype in dtypes.NARROW:
        return dtypes.cast(logcumsumexp(dtypes.widen(x), axis), x.dtype)
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis)
    total = np.moveaxis(x, axis, 0).copy()
    for i in range(1, len(total)):  # sequentially: the branch of the phase depends on the order
        total[i] = _complex_logaddexp(total[i], total[i - 1])
    return np.moveaxis(total, 0, axis)


def _complex_logaddexp(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    swap = b.real > a.real
    high, low = np.where(swap, b, a), np.where(swap, a, b)
    same_infinity = np.isinf(high.real) & (high.real == low.real)
    return np.where(same_infinity, high, high + np.log1p(np.exp(low - high)))
