"""Histograms: bincount, histc, and searchsorted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import dtypes

_UNSIGNED = np.dtype(np.uint64)


def searchsorted(boundaries: np.ndarray, values: np.ndarray, right: bool = False,
                 sorter: np.ndarray | None = None) -> np.ndarray:
    """The insertion index (int64) of each value among boundaries sorted along the last axis.

    Args:
        boundaries: (n,), or (..., n) with leading axes equal to those of `values`.
        right: after equal boundaries instead of before them.
        sorter: indices that sort `boundaries`, of its shape.

    NaN is inserted at the end, and so are values compared with a NaN boundary. For unsorted boundaries the
    result is that of the same bisection.
    """
    boundaries, values = dtypes.widen(boundaries), dtypes.widen(values)
    if sorter is not None:
        boundaries = np.take_along_axis(boundaries, sorter, -1)
    n = boundaries.shape[-1]
    low = np.zeros(values.shape, np.int64)
    if n == 0 or not values.size:
        return low
    if boundaries.ndim == 1 and boundaries.dtype == values.dtype and (
            (boundaries[1:] >= boundaries[:-1]).all() and boundaries[-1] == boundaries[-1]):  # sorted, no NaN
        return np.asarray(np.searchsorted(boundaries, values, "right" if right else "left"), np.int64)
    high = np.full(values.shape, n, np.int64)
    flat = boundaries.reshape(-1)
    base: np.ndarray | int = 0
    if boundaries.ndim > 1:
        rows = np.arange(flat.size // n).reshape(boundaries.shape[:-1])
        base = rows[..., None] * n
    for _ in range(n.bit_length()):
        middle = low + ((high - low) >> 1)
        probe = flat.take(np.minimum(middle, n - 1) + base)
        beyond = ~(probe > values) if right else ~(probe >= values)
        searching = low < high
        np.copyto(low, middle + 1, where=searching & beyond)
        np.copyto(high, middle, where=searching & ~beyond)
    return low


def bincount(x: np.ndarray, weights: np.ndarray | None = None, minlength: int = 0,
             count: Callable[[np.ndarray, int], np.ndarray | None] | None = None) -> np.ndarray:
    """The number of occurrences of each integer in `x`, or the sum of their weights.

    Args:
        count: a kernel, (x, number of counts) -> int64; None where it has none for them.

    Returns:
        int64; with weights their dtype if float32, else float64.

    Raises:
        RuntimeError: `x` is not a vector of non-negative integers, or the weights do not match it.
    """
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    # negative numbers are large without a sign
    most = int(np.maximum.reduce(x.view(_UNSIGNED) if x.dtype == np.int64 else x)) if x.ndim == 1 and x.size else 0
    if x.ndim != 1 or most >= 1 << 63 or (x.dtype.kind == "i" and x.dtype != np.int64 and x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if not x.size:
        return np.zeros(minlength, np.int64)
    if weights is not None and (weights.ndim != 1 or weights.size != x.size):
        raise RuntimeError("weights should be 1-d and have the same length as input")
    length = max(most + 1, minlength)
    if weights is None:
        counts = None if count is None else count(x, length)
        if counts is not None:
            return counts
        return np.bincount(x.astype(np.int64, copy=False), minlength=length).astype(np.int64, copy=False)
    dtype = np.dtype(np.float32 if weights.dtype == np.float32 else np.float64)
    out = np.zeros(length, dtype)
    np.add.at(out, x.astype(np.int64, copy=False), dtypes.widen(weights).astype(dtype, copy=False))
    return out


def histc(x: np.ndarray, bins: int, low: float = 0.0, high: float = 0.0) -> np.ndarray:
    """Counts of x's elements in `bins` equal bins of [low, high], of x's dtype; others are ignored.

    With ``low == high`` the range is x's own, widened by one each way if that is a point.

    Raises:
        RuntimeError: no bins, a range that is not finite, or one that runs backwards.
    """
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    dtype = x.dtype
    x = dtypes.widen(x).reshape(-1)
    left, right = x.dtype.type(low), x.dtype.type(high)
    if left == right and x.size:
        left, right = x.min(), x.max()
    if left == right:
        left, right = _rounded(left - 1, dtype)[()], _rounded(right + 1, dtype)[()]
    if not (np.isfinite(left) and np.isfinite(right)):
        raise RuntimeError(f"torch.histc: range of [{left:g}, {right:g}] is not finite")
    if left > right:
        raise RuntimeError("torch.histc: max must be larger than min")
    inside = x[(x >= left) & (x <= right)]
    place = _rounded(inside - left, dtype)
    place = _rounded(place * _rounded(x.dtype.type(bins), dtype), dtype)
    place = _rounded(place / _rounded(right - left, dtype), dtype).astype(np.int64)
    counts = np.bincount(np.minimum(place, bins - 1), minlength=bins)
    return dtypes.cast(counts.astype(x.dtype), dtype)


def _rounded(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A float32 result rounded to a half-precision dtype and back; unchanged for other dtypes."""
    return dtypes.widen(dtypes.cast(np.asarray(x), dtype)) if dtype in dtypes.NARROW else x
