"""Sums over axes, and what is sums divided: means.

NumPy adds pairwise along the innermost axis only; along the others errors would grow with
the number of terms, so long sums there are cut into blocks. Long contiguous lines are summed
as dot products with ones, which run over many lanes at once (`add_up`). Large arrays are
added up by compiled kernels, where there are some.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import wrap_dims
from ..compiled import copy, reduced
from ..compiled.thresholds import REDUCTIONS, SUMS

ndarray = np.ndarray
_add: Any = np.add.reduce
_INT64 = np.dtype(np.int64)

BLOCK = 128  # this many terms are added one after the other
LINE = 1024  # this many by one dot product
WRITTEN = 4096  # so many quotients are computed once each, and written where they go
_ONES = {np.dtype(d): np.ones(LINE, d) for d in (np.float32, np.float64)}


def axes_of(dim: Any, ndim: int) -> Any:
    """The `axis` argument of a NumPy reduction: None for all, an int or a tuple."""
    if dim.__class__ is int and -ndim <= dim < ndim:
        return dim
    if dim is None:
        return None
    return wrap_dims(dim, ndim)


def count_along(shape: tuple[int, ...], dim: Any) -> int:
    """How many elements are reduced to one."""
    if dim is None:
        return prod(shape)
    if dim.__class__ is int:
        return shape[dim] if shape else 1
    return prod(shape[a] for a in wrap_dims(dim, len(shape)))


def add_up(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """The sum of floating point or complex numbers along axes, pairwise wherever it is long."""
    if x.size <= BLOCK:
        return _add(x, axis, None, None, keepdims)
    if x.size > SUMS[0]:
        found = reduced(("sum",), "", (x,), axis, keepdims)
        if found is not None:
            return found[0]
    shape, strides = x.shape, x.strides
    n = len(shape)
    flags = x.flags
    if axis is None and (flags.c_contiguous or flags.f_contiguous):
        if x.size < LINE or x.dtype not in _ONES:
            return _add(x, None, None, None, keepdims)
        total = _line(x.reshape(-1) if flags.c_contiguous else x.T.reshape(-1))
        return total.reshape((1,) * n) if keepdims else total
    if flags.c_contiguous and (axis == n - 1 or axis == -1) and shape[-1] >= BLOCK and x.dtype in _ONES:
        total = _lines(x)
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
        x = add_up(x, rest, True)
    return x if keepdims else x.reshape([s for a, s in enumerate(shape) if a not in axes])


def _line(x: Any) -> Any:
    """The sum of a long contiguous vector."""
    ones = _ONES[x.dtype]
    whole = x.size - x.size % LINE
    total = _add(np.vecdot(x[:whole].reshape(-1, LINE), ones))
    return total + _add(x[whole:]) if whole < x.size else total


def _lines(x: Any) -> Any:
    """The sums along the last axis of a contiguous array."""
    ones, n = _ONES[x.dtype], x.shape[-1]
    if n <= LINE:
        return np.vecdot(x, ones[:n])
    whole = n - n % LINE
    total = _add(np.vecdot(x[..., :whole].reshape(*x.shape[:-1], -1, LINE), ones), -1)
    return total + _add(x[..., whole:], -1) if whole < n else total


def square_up(x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum of squares of real numbers along axes."""
    if x.size > SUMS[0]:
        found = reduced(("sum",), "squares", (x,), axis, keepdims)
        if found is not None:
            return found[0]
    if axis is None and x.size >= LINE and x.flags.c_contiguous:
        flat = x.reshape(-1)
        whole = flat.size - flat.size % LINE
        head, tail = flat[:whole].reshape(-1, LINE), flat[whole:]
        total = _add(np.vecdot(head, head)) + _add(tail * tail)
        return total.reshape((1,) * x.ndim) if keepdims else total
    return add_up(x * x, axis, keepdims)


def _blocks(x: Any, axis: int) -> Any:
    """The sum along one axis, kept with size 1: of sums of blocks."""
    while (length := x.shape[axis]) > BLOCK:
        whole = length - length % BLOCK
        head = x[(slice(None),) * axis + (slice(whole),)]
        split = head.reshape((*x.shape[:axis], whole // BLOCK, BLOCK, *x.shape[axis + 1:]))
        sums = _add(split, axis + 1)
        if whole < length:
            tail = _add(x[(slice(None),) * axis + (slice(whole, None),)], axis, None, None, True)
            sums = np.concatenate((sums, tail), axis)
        x = sums
    return _add(x, axis, None, None, True)


def _sum(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if x.size <= BLOCK and dtype is None and x.dtype.kind in "fc" and (
            dim is None or (dim.__class__ is int and -x.ndim <= dim < x.ndim)):
        return _add(x, dim, None, None, keepdim)
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if x.dtype.kind in "biu":
        if x.size > REDUCTIONS[0] and (dtype is None or x.dtype == _INT64):
            found = reduced(("sum",), "", (x,), dim, keepdim)
            if found is not None:
                return found[0]
        return _add(x, axes_of(dim, x.ndim), _INT64 if dtype is None else x.dtype, None, keepdim)
    return add_up(x, axes_of(dim, x.ndim), keepdim)


def _mean(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    total = add_up(x, axes_of(dim, x.ndim), keepdim)
    return total / x.dtype.type(x.size if dim is None else count_along(x.shape, dim))


def _nansum(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), x.dtype.type(0), x)
    return _sum(x, dim, keepdim)


def _sum_to_size(x: Any, size: tuple[int, ...]) -> Any:
    if x.shape == size:
        return x
    if x.dtype in dtypes.NARROW:
        return dtypes.cast(_sum_to_size(dtypes.widen(x), size), x.dtype)
    lead = x.ndim - len(size)
    axes = tuple(range(lead)) + tuple(i + lead for i, s in enumerate(size) if s == 1 and x.shape[i + lead] != 1)
    if axes:
        x = add_up(x, axes, True) if x.dtype.kind in "fc" else _add(x, axes, _INT64, None, True)
    return x.reshape(size)


def _expand_reduced(g: Any, size: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """A reduction's result repeated over the dimensions it lost, without copying."""
    if g.__class__ is not ndarray:
        g = np.asarray(g)
    if not g.ndim:
        return ndarray(size, g.dtype, g, 0, (0,) * len(size))
    if not keepdim:
        g = g.reshape(kept_shape(size, dim))
    if g.flags.c_contiguous:
        strides = [t if s == n else 0 for t, s, n in zip(g.strides, g.shape, size, strict=True)]
        return ndarray(size, g.dtype, g, 0, strides)
    return np.broadcast_to(g, size)


def _expand_mean(g: Any, size: tuple[int, ...], dim: Any, keepdim: bool, count: Any) -> Any:
    """A mean's cotangent repeated over the dimensions it lost, and divided by `count`: before, where that is less."""
    spread = _expand_reduced(g, size, dim, keepdim)
    if spread.size < WRITTEN or (g.__class__ is ndarray and not g.flags.c_contiguous):
        return spread / count
    share = np.asarray(g / count)
    out = np.empty(spread.shape, share.dtype)
    copy(out, _expand_reduced(share, size, dim, keepdim))
    return out


def kept_shape(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """The shape with size 1 in the reduced dimensions."""
    if dim.__class__ is int and shape:
        dim %= len(shape)
        return (*shape[:dim], 1, *shape[dim + 1:])
    axes = wrap_dims(dim, len(shape))
    return tuple([1 if i in axes else s for i, s in enumerate(shape)])


PRIMITIVES = {"sum": _sum, "_sum_all": _sum, "mean": _mean, "_mean_all": _mean, "nansum": _nansum,
              "sum_to_size": _sum_to_size, "_expand_reduced": _expand_reduced, "_expand_mean": _expand_mean}
