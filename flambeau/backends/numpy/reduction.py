"""Reductions of arrays: many elements to one along some axes.

NumPy adds pairwise along the innermost axis only; along the others errors would grow with
the number of terms, so long sums there are cut into blocks (`add_up`).
"""

from __future__ import annotations

from math import isinf, prod
from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import wrap_dim, wrap_dims

ndarray = np.ndarray
_add = np.add.reduce
_multiply = np.multiply.reduce
_maximum = np.maximum.reduce
_minimum = np.minimum.reduce
_INT64 = np.dtype(np.int64)

BLOCK = 128  # this many terms are added one after the other


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


# ----- sums ------------------------------------------------------------------------------


def add_up(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """The sum of floating point or complex numbers along axes, pairwise wherever it is long."""
    if x.size <= BLOCK or (axis is None and (x.flags.c_contiguous or x.flags.f_contiguous)):
        return _add(x, axis, None, None, keepdims)
    shape, strides = x.shape, x.strides
    n = len(shape)
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
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if x.dtype.kind in "biu":
        return _add(x, axes_of(dim, x.ndim), _INT64 if dtype is None else x.dtype, None, keepdim)
    return add_up(x, axes_of(dim, x.ndim), keepdim)


def _mean(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    total = add_up(x, axes_of(dim, x.ndim), keepdim)
    return total / x.dtype.type(count_along(x.shape, dim))


def _nansum(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), x.dtype.type(0), x)
    return _sum(x, dim, keepdim)


def _sum_to_size(x: Any, size: tuple[int, ...]) -> Any:
    if x.shape == size:
        return x
    lead = x.ndim - len(size)
    axes = tuple(range(lead)) + tuple(i + lead for i, s in enumerate(size) if s == 1 and x.shape[i + lead] != 1)
    if axes:
        x = add_up(x, axes, True) if x.dtype.kind in "fc" else _add(x, axes, _INT64, None, True)
    return x.reshape(size)


def _spread(g: Any, size: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
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


def kept_shape(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """The shape with size 1 in the reduced dimensions."""
    if dim.__class__ is int and shape:
        dim %= len(shape)
        return (*shape[:dim], 1, *shape[dim + 1:])
    axes = wrap_dims(dim, len(shape))
    return tuple([1 if i in axes else s for i, s in enumerate(shape)])


# ----- products --------------------------------------------------------------------------


def _prod(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    integer = dtype is None and x.dtype.kind in "biu"
    if dim is None and not x.flags.c_contiguous:
        x = x.ravel()  # NumPy's order of multiplication follows memory, and overflow depends on it
    return _multiply(x, axes_of(dim, x.ndim), _INT64 if integer else x.dtype, None, keepdim)


def _product_of_others(x: Any, dim: Any = None) -> Any:
    """For each element the product of all others along `dim` (or of all)."""
    if not x.ndim:
        return np.ones_like(x)
    if dim is None:
        flat = x.reshape(-1)
        return _product_of_others(flat, 0).reshape(x.shape)
    axis = wrap_dim(dim, x.ndim)
    if np.logical_and.reduce(x, None):
        return _multiply(x, axis, None, None, True) / x
    zeros = x == 0
    count = _add(zeros, axis, None, None, True)
    others = _multiply(np.where(zeros, x.dtype.type(1), x), axis, None, None, True)
    alone = np.where(zeros & (count == 1), others, x.dtype.type(0))
    return np.where(count == 0, others / x, alone)


# ----- extrema ---------------------------------------------------------------------------


def _require(x: Any, dim: Any, name: str, error: type[Exception] = IndexError) -> None:
    """An extremum over nothing is none."""
    if x.size:
        return
    if dim is None or dim == ():
        ending = "." if name in ("argmax", "argmin") else \
            ". Specify the reduction dim with the 'dim' argument."
        kind = IndexError if name in ("argmax", "argmin") else RuntimeError
        raise kind(f"{name}(): Expected reduction dim to be specified for input.numel() == 0{ending}")
    for axis in wrap_dims(dim, x.ndim):
        if x.shape[axis] == 0:
            asked = dim if dim.__class__ is int else axis
            raise error(f"{name}(): Expected reduction dim {asked} to have non-zero size.")


def _extremum(reduce: Any, name: str) -> Any:
    def extremum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if not x.size:
            _require(x, dim, name)
        return reduce(x, axes_of(dim, x.ndim), None, None, keepdim)

    return extremum


def _all_of(reduce: Any, name: str) -> Any:
    def extremum(x: Any) -> Any:
        if not x.size:
            _require(x, None, name)
        return reduce(x, None)

    return extremum


def _aminmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if not x.size:
        if dim is None:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                               "identity.")
        if x.shape[wrap_dim(dim, x.ndim)] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {dim} to have non-zero size.")
    axis = axes_of(dim, x.ndim)
    return _minimum(x, axis, None, None, keepdim), _maximum(x, axis, None, None, keepdim)


def _place(name: str) -> Any:
    where = getattr(ndarray, name)

    def place(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if not x.size:
            _require(x, dim, name)
        if dim is None or not x.ndim:
            if dim is not None:
                wrap_dim(dim, 0)
            found = where(x) if x.ndim else np.zeros((), np.int64)
            return np.full((1,) * x.ndim, found) if keepdim else found
        dim = wrap_dim(dim, x.ndim)
        return where(x, dim, keepdims=keepdim)

    return place


def positions(shape: tuple[int, ...], axis: int, index: Any) -> Any:
    """Flat positions, in row-major order, of elements given by their index along one axis.

    Args:
        index: integers, shaped as `shape` but for the length along `axis`; that axis may be missing.
    """
    n = shape[axis]
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1:])
    if outer * inner == 1 or not index.size:
        return index.reshape(-1)
    count = index.size // (outer * inner)
    if inner == 1:
        return (index.reshape(outer, count) + np.arange(0, outer * n, n).reshape(-1, 1)).reshape(-1)
    flat = index.reshape(outer, count, inner) * inner + np.arange(inner)
    if outer > 1:
        flat += np.arange(0, outer * n * inner, n * inner).reshape(-1, 1, 1)
    return flat.reshape(-1)


def _picked(x: Any, index: Any, dim: int) -> Any:
    if not x.ndim:
        return np.broadcast_to(x, index.shape).copy()
    at = positions(x.shape, wrap_dim(dim, x.ndim), index)
    return x.reshape(-1).take(at).reshape(index.shape)


def _placed(g: Any, index: Any, dim: int, size: tuple[int, ...], repeats: bool = False) -> Any:
    whole = np.zeros(size, g.dtype)
    at = positions(size, wrap_dim(dim, len(size)), index) if size else 0
    if repeats and size:
        np.add.at(whole.reshape(-1), at, g.reshape(-1))
    elif size:
        whole.reshape(-1)[at] = g.reshape(-1)
    else:
        whole[...] = g.reshape(())
    return whole


def _selected(name: str) -> Any:
    where = getattr(ndarray, "arg" + name)

    def selected(x: Any, dim: int, keepdim: bool = False) -> Any:
        axis = wrap_dim(dim, x.ndim)
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        if not x.size:
            _require(x, dim, name)
        index = where(x, axis, keepdims=keepdim)
        if x.ndim == 1:
            return x[index], index
        return _picked(x, index, axis), index

    return selected


def _share(x: Any, out: Any, dim: Any = None, keepdim: bool = False, nan: bool = False) -> Any:
    """1 / (number of ties) where an element equals its extremum, 0 elsewhere."""
    if dim is not None and not keepdim and x.ndim:
        out = np.reshape(out, kept_shape(x.shape, dim))
    tied = x == out
    if nan and x.dtype.kind == "f":
        tied |= np.isnan(x) & np.isnan(out)
    axes = axes_of(dim, x.ndim)
    return tied / _add(tied, axes, None, None, True).astype(x.dtype)


# ----- truth -----------------------------------------------------------------------------


def _truth(ufunc: Any) -> Any:
    reduce = ufunc.reduce

    def truth(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        axis = () if dim == () or dim == [] else axes_of(dim, x.ndim)
        found = reduce(x, axis, None, None, keepdim)
        return found.astype(np.uint8) if x.dtype == np.uint8 else found

    return truth


def _count_nonzero(x: Any, dim: Any = None) -> Any:
    if dim is None:
        return np.asarray(np.count_nonzero(x), np.int64)
    return _add(x != 0, axes_of(dim, x.ndim), _INT64)


# ----- moments ---------------------------------------------------------------------------


def _var_mean(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    axis = axes_of(dim, x.ndim)
    count = count_along(x.shape, dim)
    real = x.real.dtype.type
    mean = add_up(x, axis, True) / x.dtype.type(count)
    off = x - mean
    squares = off.real * off.real + off.imag * off.imag if x.dtype.kind == "c" else off * off
    freedom = count - (1 if correction is None else correction)
    var = add_up(squares, axis, keepdim) / real(max(freedom, 0))
    return var, mean if keepdim else mean.reshape(np.shape(var))


def _var(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    return _var_mean(x, dim, correction, keepdim)[0]


def _std(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    return np.sqrt(_var_mean(x, dim, correction, keepdim)[0])


def _std_mean(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    var, mean = _var_mean(x, dim, correction, keepdim)
    return np.sqrt(var), mean


# ----- norms -----------------------------------------------------------------------------


def _vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if dim == () or dim == []:
        dim = None
    axis = axes_of(dim, x.ndim)
    if ord == 2 and x.dtype.kind == "f":
        return np.sqrt(add_up(x * x, axis, keepdim))
    if (ord < 0 or isinf(ord)) and not x.size:
        _require_norm(x, ord, dim)
    if x.dtype.kind == "c":
        if ord == 2:
            return np.sqrt(add_up(x.real * x.real + x.imag * x.imag, axis, keepdim))
    size = np.abs(x)
    if ord == 1:
        return add_up(size, axis, keepdim)
    if ord == 0:
        return _add(x != 0, axis, size.dtype, None, keepdim)
    if isinf(ord):
        return (_maximum if ord > 0 else _minimum)(size, axis, None, None, keepdim)
    exponent = size.dtype.type(ord)
    return add_up(size ** exponent, axis, keepdim) ** size.dtype.type(1 / ord)


def _require_norm(x: Any, ord: float, dim: Any) -> None:
    shown = f"{ord:g}"
    if dim is None:
        raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on an empty tensor because the operation "
                           "does not have an identity")
    for axis in wrap_dims(dim, x.ndim):
        if x.shape[axis] == 0:  # PyTorch's text lacks a space
            raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on the dimension {axis}because this "
                               "dimension is empty and the operation does not have an identity")


def _dist(x: Any, y: Any, p: Any = 2) -> Any:
    return _vector_norm(x - y, p)


# ----- logarithms of sums ----------------------------------------------------------------


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    axis = axes_of(dim, x.ndim)
    if not x.size:
        with_zero = add_up(x, axis, keepdim)
        return np.log(with_zero)
    parts = x.real if x.dtype.kind == "c" else x
    top = _maximum(parts, axis, None, None, True)
    top = np.where(np.isinf(top), parts.dtype.type(0), top)
    total = np.log(add_up(np.exp(x - top), axis, True)) + top
    return total if keepdim else total.reshape([s for i, s in enumerate(x.shape) if i not in wrap_dims(dim, x.ndim)])


PRIMITIVES = {
    "sum": _sum, "_sum_all": _sum, "mean": _mean, "_mean_all": _mean, "nansum": _nansum, "sum_to_size": _sum_to_size,
    "_spread": _spread, "_prod_all": _prod, "prod": _prod, "_product_of_others": _product_of_others,
    "_max_all": _all_of(_maximum, "max"), "_min_all": _all_of(_minimum, "min"),
    "amax": _extremum(_maximum, "amax"), "amin": _extremum(_minimum, "amin"), "aminmax": _aminmax,
    "_max_along": _selected("max"), "_min_along": _selected("min"), "argmax": _place("argmax"),
    "argmin": _place("argmin"), "_picked": _picked, "_placed": _placed, "_share": _share,
    "all": _truth(np.logical_and), "any": _truth(np.logical_or), "count_nonzero": _count_nonzero,
    "var": _var, "std": _std, "var_mean": _var_mean, "std_mean": _std_mean,
    "linalg_vector_norm": _vector_norm, "dist": _dist, "logsumexp": _logsumexp,
}
