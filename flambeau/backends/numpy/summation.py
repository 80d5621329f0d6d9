"""Sums and means over axes of arrays.

NumPy sums pairwise along the innermost axis only. Along the others, long sums are split into blocks, to bound the
rounding error. Long contiguous rows are summed as dot products with ones, which use vector instructions (`sum_axes`).
Large arrays are summed by compiled kernels where there are any.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import wrap_dims
from ..compiled import copy, reduce_arrays
from ..compiled.thresholds import REDUCTIONS, SUMS

ndarray = np.ndarray
_add: Any = np.add.reduce
_INT64, _F32 = np.dtype(np.int64), np.dtype(np.float32)

BLOCK = 128  # terms that are added sequentially
ROW = 1024  # terms of one dot product
DIVIDE_FIRST = 4096  # elements from which a mean's gradient is divided before it is broadcast
_ONES = {np.dtype(d): np.ones(ROW, d) for d in (np.float32, np.float64)}


def axes_of(dim: Any, ndim: int) -> Any:
    """Return the `axis` argument of a NumPy reduction: None for all, an int or a tuple."""
    if dim.__class__ is int and -ndim <= dim < ndim:
        return dim
    if dim is None:
        return None
    return wrap_dims(dim, ndim)


def reduced_count(shape: tuple[int, ...], dim: Any) -> int:
    """Return the number of elements that are reduced to one."""
    if dim is None:
        return prod(shape)
    if dim.__class__ is int:
        return shape[dim] if shape else 1
    return prod(shape[a] for a in wrap_dims(dim, len(shape)))


def sum_axes(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """Return the sum of floating point or complex elements over axes, pairwise or in blocks where it is long."""
    size = x.size
    if size <= BLOCK:
        return _add(x, axis, None, None, keepdims)
    if size > SUMS[0]:
        result = reduce_arrays(("sum",), "", (x,), axis, keepdims)
        if result is not None:
            return result[0]
    shape, strides = x.shape, x.strides
    n = len(shape)
    flags = x.flags
    if axis is None and (flags.c_contiguous or flags.f_contiguous):
        if x.size < ROW or x.dtype not in _ONES:
            return _add(x, None, None, None, keepdims)
        total = _sum_row(x.reshape(-1) if flags.c_contiguous else x.T.reshape(-1))
        return total.reshape((1,) * n) if keepdims else total
    if flags.c_contiguous and (axis == n - 1 or axis == -1) and shape[-1] >= BLOCK and x.dtype in _ONES:
        total = _sum_rows(x)
        return total[..., None] if keepdims else total
    axes = tuple(range(n)) if axis is None else (axis % n,) if axis.__class__ is int else axis
    inner, least = -1, 0
    for a in range(n):
        if shape[a] > 1 and (inner < 0 or abs(strides[a]) < least):
            inner, least = a, abs(strides[a])
    outer = [a for a in axes if a != inner]
    if prod([shape[a] for a in outer]) <= BLOCK:
        return _add(x, axis, None, None, keepdims)
    longest = max(outer, key=shape.__getitem__)
    x = _blocks(x, longest)
    rest = tuple(a for a in axes if a != longest)
    if rest:
        x = sum_axes(x, rest, True)
    return x if keepdims else x.reshape([s for a, s in enumerate(shape) if a not in axes])


def _sum_row(x: Any) -> Any:
    """Return the sum of a long contiguous vector."""
    ones = _ONES[x.dtype]
    multiple = x.size - x.size % ROW
    total = _add(np.vecdot(x[:multiple].reshape(-1, ROW), ones))
    return total + _add(x[multiple:]) if multiple < x.size else total


def _sum_rows(x: Any) -> Any:
    """Return the sums along the last axis of a contiguous array."""
    ones, n = _ONES[x.dtype], x.shape[-1]
    if n <= ROW:
        return np.vecdot(x, ones[:n])
    multiple = n - n % ROW
    total = _add(np.vecdot(x[..., :multiple].reshape(*x.shape[:-1], -1, ROW), ones), -1)
    return total + _add(x[..., multiple:], -1) if multiple < n else total


def sum_of_squares(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the sum of squares of real elements over axes."""
    if x.size > SUMS[0]:
        result = reduce_arrays(("sum",), "squares", (x,), axis, keepdims)
        if result is not None:
            return result[0]
    if axis is None and x.size >= ROW and x.flags.c_contiguous:
        flat = x.reshape(-1)
        multiple = flat.size - flat.size % ROW
        head, tail = flat[:multiple].reshape(-1, ROW), flat[multiple:]
        total = _add(np.vecdot(head, head)) + _add(tail * tail)
        return total.reshape((1,) * x.ndim) if keepdims else total
    return sum_axes(x * x, axis, keepdims)


def _blocks(x: Any, axis: int) -> Any:
    """Return the sum along one axis, kept with size 1, as sums of blocks."""
    while (length := x.shape[axis]) > BLOCK:
        multiple = length - length % BLOCK
        head = x[(slice(None),) * axis + (slice(multiple),)]
        split = head.reshape((*x.shape[:axis], multiple // BLOCK, BLOCK, *x.shape[axis + 1:]))
        sums = _add(split, axis + 1)
        if multiple < length:
            tail = _add(x[(slice(None),) * axis + (slice(multiple, None),)], axis, None, None, True)
            sums = np.concatenate((sums, tail), axis)
        x = sums
    return _add(x, axis, None, None, True)


def _sum(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is None and ((d := x.dtype) is _F32 or d.kind in "fc") and (
            dim is None or (dim.__class__ is int and -x.ndim <= dim < x.ndim)):
        return _add(x, dim, None, None, keepdim) if x.size <= BLOCK else sum_axes(x, dim, keepdim)
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if x.dtype.kind in "biu":
        if x.size > REDUCTIONS[0] and (dtype is None or x.dtype == _INT64):
            result = reduce_arrays(("sum",), "", (x,), dim, keepdim)
            if result is not None:
                return result[0]
        return _add(x, axes_of(dim, x.ndim), _INT64 if dtype is None else x.dtype, None, keepdim)
    return sum_axes(x, axes_of(dim, x.ndim), keepdim)


def _mean(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if dim is None:
        return sum_axes(x, None, keepdim) / x.dtype.type(x.size)
    if dim.__class__ is int and x.size <= BLOCK and -x.ndim <= dim < x.ndim:
        return _add(x, dim, None, None, keepdim) / x.dtype.type(x.shape[dim])
    axes = axes_of(dim, x.ndim)
    count = prod([x.shape[a] for a in axes]) if axes.__class__ is tuple else reduced_count(x.shape, axes)
    return sum_axes(x, axes, keepdim) / x.dtype.type(count)


def _nansum(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), x.dtype.type(0), x)
    return _sum(x, dim, keepdim, dtype)


def _sum_to_size(x: Any, size: tuple[int, ...]) -> Any:
    shape = x.shape
    if shape == size:
        return x
    if size and shape[1:] == size and shape[0] <= BLOCK and x.size <= SUMS[0] and x.dtype is _F32 and (
            x.flags.c_contiguous):
        return _add(x, 0)  # few rows: `sum_axes` adds the same terms in the same order
    lead = len(shape) - len(size)
    if x.dtype in dtypes.NARROW:
        return dtypes.cast(_sum_to_size(dtypes.widen(x), size), x.dtype)
    axes = tuple(range(lead)) + tuple(i + lead for i, s in enumerate(size) if s == 1 and x.shape[i + lead] != 1)
    if axes:
        x = sum_axes(x, axes, True) if x.dtype.kind in "fc" else _add(x, axes, _INT64, None, True)
    return x.reshape(size)


def _expand_reduced(g: Any, size: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """Return a reduction's result broadcast over the reduced dimensions, without a copy."""
    if g.__class__ is not ndarray:
        g = np.asarray(g)
    if not g.ndim:
        return ndarray(size, g.dtype, g, 0, (0,) * len(size))
    if not keepdim:
        g = g.reshape(keepdim_shape(size, dim))
    if g.flags.c_contiguous:
        strides = [t if s == n else 0 for t, s, n in zip(g.strides, g.shape, size, strict=True)]
        return ndarray(size, g.dtype, g, 0, strides)
    return np.broadcast_to(g, size)


def _expand_mean(g: Any, size: tuple[int, ...], dim: Any, keepdim: bool, count: Any) -> Any:
    """Return a mean's gradient divided by `count` and broadcast; large results are divided before the broadcast."""
    spread = _expand_reduced(g, size, dim, keepdim)
    if spread.size < DIVIDE_FIRST or (g.__class__ is ndarray and not g.flags.c_contiguous):
        return spread / count
    share = np.asarray(g / count)
    out = np.empty(spread.shape, share.dtype)
    copy(out, _expand_reduced(share, size, dim, keepdim))
    return out


def keepdim_shape(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """Return the shape with size 1 in the reduced dimensions."""
    if dim.__class__ is int and shape:
        dim %= len(shape)
        return (*shape[:dim], 1, *shape[dim + 1:])
    axes = wrap_dims(dim, len(shape))
    return tuple([1 if i in axes else s for i, s in enumerate(shape)])


PRIMITIVES = {"sum": _sum, "_sum_all": _sum, "mean": _mean, "_mean_all": _mean, "nansum": _nansum,
              "sum_to_size": _sum_to_size, "_expand_reduced": _expand_reduced, "_expand_mean": _expand_mean}
