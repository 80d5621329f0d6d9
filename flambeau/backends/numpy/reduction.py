"""Reductions on arrays other than sums: products, extrema, all, any, moments, norms, logsumexp."""

from __future__ import annotations

from functools import lru_cache
from math import isinf, prod
from typing import Any

import numpy as np

from ... import dtypes
from ...errstate import run_quietly
from ...shapes import broadcast_shapes, wrap_dim, wrap_dims
from ..compiled import few_positions, indexing_kernels, reduce_arrays
from ..compiled.thresholds import ARG_REDUCTIONS, INDEXING, REDUCTIONS, SMALL_KERNELS, SUMS
from .summation import axes_of, keepdim_shape, reduced_count, sum_axes, sum_of_squares

ndarray = np.ndarray
_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_INT64, _F32 = np.dtype(np.int64), np.dtype(np.float32)
_CACHED_ROWS = 256  # the positions of more rows are computed anew


# ----- products --------------------------------------------------------------------------


def _prod(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    d = x.dtype
    integer = d is not _F32 and dtype is None and d.kind in "biu"
    if x.size <= REDUCTIONS[0]:
        if d is _F32 and dim.__class__ is int and -x.ndim <= dim < x.ndim:
            return _multiply(x, dim, None, None, keepdim)
    elif integer or d.kind == "f":
        result = reduce_arrays(("prod",), "", (x,), dim, keepdim)
        if result is not None:
            return result[0]
    if dim is None:
        if not x.flags.c_contiguous:
            x = x.ravel()  # NumPy multiplies in memory order, and overflow depends on the order
    elif dim.__class__ is not int or dim < -x.ndim or dim >= x.ndim:
        dim = axes_of(dim, x.ndim)
    return _multiply(x, dim, _INT64 if integer else d, None, keepdim)


def _product_of_others(x: Any, dim: Any = None) -> Any:
    """Return for each element the product of all others along `dim` (or of all)."""
    if not x.ndim:
        return np.ones_like(x)
    if dim is None:
        flat = x.reshape(-1)
        if flat.size - np.count_nonzero(flat) > 1:  # as PyTorch, also with inf or NaN
            return np.zeros_like(x)
        return _product_of_others(flat, 0).reshape(x.shape)
    axis = wrap_dim(dim, x.ndim)
    all_nonzero = _all(x, axis, True)
    result = _prod(x, axis, True) / x
    if not all_nonzero.all():  # rows with zeros are recomputed
        rows = ~np.moveaxis(all_nonzero, axis, -1)[..., 0]
        np.moveaxis(result, axis, -1)[rows] = _product_of_others_with_zeros(np.moveaxis(x, axis, -1)[rows])
    return result


def _product_of_others_with_zeros(x: ndarray) -> ndarray:
    """Return for each element the product of all others in its row, for rows that contain zeros.

    It is nonzero only for a single zero; elsewhere it is 0, or NaN where another element is not finite.
    """
    zeros, nonfinite = x == 0, ~np.isfinite(x)
    others = _multiply(np.where(zeros, x.dtype.type(1), x), -1, None, None, True)
    is_single_zero = zeros & (_add(zeros, -1, None, None, True) == 1)
    other_nonfinite = _add(nonfinite, -1, None, None, True) - nonfinite
    otherwise = np.where(other_nonfinite > 0, x.dtype.type(np.nan), x.dtype.type(0))
    result: ndarray = np.where(is_single_zero, others, otherwise)
    return result


# ----- extrema ---------------------------------------------------------------------------


def _check_nonempty(x: Any, dim: Any, name: str, error: type[Exception] = IndexError) -> None:
    """Raise PyTorch's error for an extremum over no elements."""
    if x.size:
        return
    if dim is None or dim == ():
        ending = "." if name in ("argmax", "argmin") else \
            ". Specify the reduction dim with the 'dim' argument."
        kind = IndexError if name in ("argmax", "argmin") else RuntimeError
        raise kind(f"{name}(): Expected reduction dim to be specified for input.numel() == 0{ending}")
    for axis in wrap_dims(dim, x.ndim):
        if x.shape[axis] == 0:
            reported = dim if dim.__class__ is int else axis
            raise error(f"{name}(): Expected reduction dim {reported} to have non-zero size.")


def _extremum(reduce: Any, name: str) -> Any:
    ops = (name[1:],)

    def extremum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        size = x.size
        if not size:
            _check_nonempty(x, dim, name)
        elif size > REDUCTIONS[0]:
            result = reduce_arrays(ops, "", (x,), dim, keepdim)
            if result is not None:
                return result[0]
        return reduce(x, axes_of(dim, x.ndim), None, None, keepdim)

    return extremum


def _extremum_of_all(reduce: Any, name: str) -> Any:
    ops = (name,)

    def extremum(x: Any) -> Any:
        size = x.size
        if not size:
            _check_nonempty(x, None, name)
        elif size > REDUCTIONS[0]:
            result = reduce_arrays(ops, "", (x,), None, False)
            if result is not None:
                return result[0]
        return reduce(x, None)

    return extremum


def _aminmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if not x.size:
        if dim is None:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                               "identity.")
        if x.shape[wrap_dim(dim, x.ndim)] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {dim} to have non-zero size.")
    if x.size > REDUCTIONS[0]:
        result = reduce_arrays(("min", "max"), "", (x,), dim, keepdim)
        if result is not None:
            return result
    axis = axes_of(dim, x.ndim)
    return _minimum(x, axis, None, None, keepdim), _maximum(x, axis, None, None, keepdim)


def _arg_extremum(name: str) -> Any:
    where = getattr(ndarray, name)

    def arg_extremum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if not x.size:
            _check_nonempty(x, dim, name)
        if dim is None or not x.ndim:
            if dim is not None:
                wrap_dim(dim, 0)
            result = where(x) if x.ndim else np.zeros((), np.int64)
            return np.full((1,) * x.ndim, result) if keepdim else result
        dim = wrap_dim(dim, x.ndim)
        if x.size > ARG_REDUCTIONS[0]:
            result = reduce_arrays((name,), "", (x,), dim, keepdim)
            if result is not None:
                return result[0]
        return where(x, dim, keepdims=keepdim)

    return arg_extremum


def _row_starts(rows: int, n: int) -> Any:
    """The positions of the first elements of rows of `n` elements, as a column."""
    starts = np.arange(0, rows * n, n).reshape(-1, 1)
    starts.flags.writeable = False
    return starts


_few_row_starts = lru_cache(256)(_row_starts)


def flat_positions(shape: tuple[int, ...], axis: int, index: Any) -> Any:
    """Return the flat row-major positions of elements given by their index along one axis.

    Args:
        index: integers of shape `shape` except along `axis`, which may have another size or be missing.
    """
    n = shape[axis]
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1:])
    if outer * inner == 1 or not index.size:
        return index.reshape(-1)
    count = index.size // (outer * inner)
    if inner == 1:
        starts = _few_row_starts(outer, n) if outer <= _CACHED_ROWS else _row_starts(outer, n)
        return (index.reshape(outer, count) + starts).reshape(-1)
    flat = index.reshape(outer, count, inner) * inner + np.arange(inner)
    if outer > 1:
        flat += np.arange(0, outer * n * inner, n * inner).reshape(-1, 1, 1)
    return flat.reshape(-1)


def gather_dim(x: Any, index: Any, dim: int) -> Any:
    """Return the elements at `index` along `dim`; the index may lack that dimension."""
    if not x.ndim:
        return np.broadcast_to(x, index.shape).copy()
    positions = flat_positions(x.shape, wrap_dim(dim, x.ndim), index)
    return x.reshape(-1).take(positions).reshape(index.shape)


def _scatter_dim(g: Any, index: Any, dim: int, size: tuple[int, ...], repeated: bool = False) -> Any:
    few = few_positions() if SMALL_KERNELS[0] and size else None
    result = None if few is None else few.put_along(index, g, wrap_dim(dim, len(size)), size,
                                                    few.ADD if repeated else few.REPLACE)
    if result is not None:
        return result
    kernels = indexing_kernels() if size and prod(size) > INDEXING[0] and g.ndim == index.ndim == len(size) else None
    result = None if kernels is None else kernels.put_into_zeros(index, g, wrap_dim(dim, len(size)), tuple(size),
                                              "add" if repeated else "set")
    if result is not None:
        return result
    out = run_quietly(np.zeros, size, g.dtype)  # in memory of the allocator
    positions = flat_positions(size, wrap_dim(dim, len(size)), index) if size else 0
    if repeated and size:
        np.add.at(out.reshape(-1), positions, g.reshape(-1))
    elif size:
        out.reshape(-1)[positions] = g.reshape(-1)
    else:
        out[...] = g.reshape(())
    return out


def _extremum_and_index(name: str) -> Any:
    where = getattr(ndarray, "arg" + name)

    def selected(x: Any, dim: int, keepdim: bool = False) -> Any:
        axis = wrap_dim(dim, x.ndim)
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        if not x.size:
            _check_nonempty(x, dim, name)
        if x.size > (REDUCTIONS[0] if x.ndim > 1 else ARG_REDUCTIONS[0]):
            result = reduce_arrays((name, "arg" + name), "", (x,), axis, keepdim)
            if result is not None:
                return result
        index = where(x, axis, keepdims=keepdim)
        if x.ndim == 1:
            return x[index], index
        return gather_dim(x, index, axis), index

    return selected


def _tie_shares(x: Any, out: Any, dim: Any = None, keepdim: bool = False, nan: bool = False) -> Any:
    """Return 1 / (number of ties) where an element equals its extremum, else 0."""
    if dim is not None and not keepdim and x.ndim:
        out = np.reshape(out, keepdim_shape(x.shape, dim))
    tied = x == out
    if nan and x.dtype.kind == "f":
        tied |= np.isnan(x) & np.isnan(out)
    axes = axes_of(dim, x.ndim)
    return tied / _add(tied, axes, None, None, True).astype(x.dtype)


# ----- all, any, counts -----------------------------------------------------------------------------


def _logical_reduction(ufunc: Any) -> Any:
    reduce = ufunc.reduce
    name = "all" if ufunc is np.logical_and else "any"

    def reduction(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.size > REDUCTIONS[0] and dim != () and dim != [] and not (dim is None and x.dtype.kind == "b"):
            result = reduce_arrays((name,), "", (x,), dim, keepdim)
            if result is not None:
                return result[0].astype(np.uint8) if x.dtype == np.uint8 else result[0]
        axis = () if dim == () or dim == [] else axes_of(dim, x.ndim)
        result = reduce(x, axis, None, None, keepdim)
        return result.astype(np.uint8) if x.dtype == np.uint8 else result

    return reduction


_all, _any = _logical_reduction(np.logical_and), _logical_reduction(np.logical_or)


def _count_nonzero(x: Any, dim: Any = None) -> Any:
    if x.size > REDUCTIONS[0]:
        result = reduce_arrays(("sum",), "nonzero", (x,), dim, False)
        if result is not None:
            return result[0]
    if dim is None:
        return np.asarray(np.count_nonzero(x), np.int64)
    return _add(x != 0, axes_of(dim, x.ndim), _INT64)


# ----- moments ---------------------------------------------------------------------------


def _moments(x: Any, dim: Any, correction: float | None, keepdim: bool) -> Any:
    """Return the variance, and the mean with keepdim."""
    axis = axes_of(dim, x.ndim)
    count = x.size if dim is None else reduced_count(x.shape, dim)
    mean = sum_axes(x, axis, True)
    mean = np.asarray(mean / count)
    result = reduce_arrays(("sum",), "deviations", (x, mean), axis, keepdim) if x.size > SUMS[0] else None
    if result is not None:
        squares = result[0]
    elif x.dtype.kind == "c":
        centered = x - mean
        squares = sum_axes(centered.real * centered.real + centered.imag * centered.imag, axis, keepdim)
    else:
        centered = x - mean
        squares = np.multiply(centered, centered, centered) if centered.ndim else centered * centered
        squares = sum_axes(squares, axis, keepdim)
    degrees_of_freedom = count - (1 if correction is None else correction)
    return squares / (degrees_of_freedom if degrees_of_freedom > 0 else 0), mean


def _var_mean(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    var, mean = _moments(x, dim, correction, keepdim)
    return var, mean if keepdim else mean.reshape(np.shape(var))


def _var(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    return _moments(x, dim, correction, keepdim)[0]


def _std(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    return np.sqrt(_moments(x, dim, correction, keepdim)[0])


def _std_mean(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    var, mean = _var_mean(x, dim, correction, keepdim)
    return np.sqrt(var), mean


# ----- norms -----------------------------------------------------------------------------


def _vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    if dim is None or (dim.__class__ is int and -x.ndim <= dim < x.ndim):
        axis = dim
    else:
        axis = None if dim == () or dim == [] else axes_of(dim, x.ndim)
    if ord == 2:
        if x.dtype.kind == "f":
            return np.sqrt(sum_of_squares(x, axis, keepdim))
        if x.dtype.kind == "c":
            return np.sqrt(sum_axes(x.real * x.real + x.imag * x.imag, axis, keepdim))
    elif ord == 1:
        if x.size > SUMS[0]:
            result = reduce_arrays(("sum",), "abs", (x,), axis, keepdim)
            if result is not None:
                return result[0]
        return sum_axes(np.abs(x), axis, keepdim)
    if (ord < 0 or isinf(ord)) and not x.size:
        _require_norm(x, ord, None if axis is None else dim)
    size = np.abs(x)
    if ord == 0:
        return _add(x != 0, axis, size.dtype, None, keepdim)
    if isinf(ord):
        return (_maximum if ord > 0 else _minimum)(size, axis, None, None, keepdim)
    exponent = size.dtype.type(ord)
    return sum_axes(size ** exponent, axis, keepdim) ** size.dtype.type(1 / ord)


def _require_norm(x: Any, ord: float, dim: Any) -> None:
    order = f"{ord:g}"
    if dim is None:
        raise RuntimeError(f"linalg.vector_norm cannot compute the {order} norm on an empty tensor because the "
                           "operation does not have an identity")
    for axis in wrap_dims(dim, x.ndim):
        if x.shape[axis] == 0:  # PyTorch's text lacks a space
            raise RuntimeError(f"linalg.vector_norm cannot compute the {order} norm on the dimension {axis}because "
                               "this dimension is empty and the operation does not have an identity")


def _dist(x: Any, y: Any, p: Any = 2) -> Any:
    if x.shape != y.shape:
        broadcast_shapes(x.shape, y.shape)
    return _vector_norm(x - y, p)


# ----- logsumexp ----------------------------------------------------------------


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    axis = axes_of(dim, x.ndim)
    if not x.size:
        with_zero = sum_axes(x, axis, keepdim)
        return np.log(with_zero)
    parts = x.real if x.dtype.kind == "c" else x
    result = reduce_arrays(("max",), "", (parts,), axis, True) if x.size > SUMS[0] else None
    top = _maximum(parts, axis, None, None, True) if result is None else result[0]
    if not np.isfinite(top).all():
        top = np.where(np.isinf(top), parts.dtype.type(0), top)
    result = reduce_arrays(("sum",), "exponentials", (x, top), axis, keepdim) if x.size > SUMS[0] else None
    total = np.log(sum_axes(np.exp(x - top), axis, keepdim) if result is None else result[0])
    return total + (top if keepdim else top.reshape(np.shape(total)))


PRIMITIVES = {
    "_prod_all": _prod, "prod": _prod, "_product_of_others": _product_of_others,
    "_max_all": _extremum_of_all(_maximum, "max"), "_min_all": _extremum_of_all(_minimum, "min"),
    "amax": _extremum(_maximum, "amax"), "amin": _extremum(_minimum, "amin"), "aminmax": _aminmax,
    "_max_dim": _extremum_and_index("max"), "_min_dim": _extremum_and_index("min"), "argmax": _arg_extremum("argmax"),
    "argmin": _arg_extremum("argmin"), "_gather_dim": gather_dim, "_scatter_dim": _scatter_dim,
    "_tie_shares": _tie_shares,
    "all": _all, "any": _any, "count_nonzero": _count_nonzero,
    "var": _var, "std": _std, "var_mean": _var_mean, "std_mean": _std_mean,
    "linalg_vector_norm": _vector_norm, "dist": _dist, "logsumexp": _logsumexp,
}
