"""Reductions of arrays other than sums: products, extrema, truth, moments, norms."""

from __future__ import annotations

from math import isinf, prod
from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import wrap_dim, wrap_dims
from ..compiled import indexer, reduced
from ..compiled.thresholds import INDEXED, PLACES, REDUCTIONS, SUMS
from .summation import add_up, axes_of, count_along, kept_shape, square_up

ndarray = np.ndarray
_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_INT64 = np.dtype(np.int64)


# ----- products --------------------------------------------------------------------------


def _prod(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    integer = dtype is None and x.dtype.kind in "biu"
    if x.size > REDUCTIONS[0] and (integer or x.dtype.kind == "f"):
        found = reduced(("prod",), "", (x,), dim, keepdim)
        if found is not None:
            return found[0]
    if dim is None and not x.flags.c_contiguous:
        x = x.ravel()  # NumPy's order of multiplication follows memory, and overflow depends on it
    return _multiply(x, axes_of(dim, x.ndim), _INT64 if integer else x.dtype, None, keepdim)


def _product_of_others(x: Any, dim: Any = None) -> Any:
    """For each element the product of all others along `dim` (or of all)."""
    if not x.ndim:
        return np.ones_like(x)
    if dim is None:
        flat = x.reshape(-1)
        if flat.size - np.count_nonzero(flat) > 1:  # PyTorch's answer, whatever else there is
            return np.zeros_like(x)
        return _product_of_others(flat, 0).reshape(x.shape)
    axis = wrap_dim(dim, x.ndim)
    whole = _all(x, axis, True)
    result = _prod(x, axis, True) / x
    if not whole.all():  # lines with zeros are done anew
        lines = ~np.moveaxis(whole, axis, -1)[..., 0]
        np.moveaxis(result, axis, -1)[lines] = _others_of_zeros(np.moveaxis(x, axis, -1)[lines])
    return result


def _others_of_zeros(x: ndarray) -> ndarray:
    """For each element the product of all others in its row. All rows have zeros: only one that is alone has others.

    All other products have a zero in them: they are 0, or NaN where one of the others is not finite.
    """
    zeros, wild = x == 0, ~np.isfinite(x)
    others = _multiply(np.where(zeros, x.dtype.type(1), x), -1, None, None, True)
    alone = zeros & (_add(zeros, -1, None, None, True) == 1)
    beside = _add(wild, -1, None, None, True) - wild
    found: ndarray = np.where(alone, others, np.where(beside > 0, x.dtype.type(np.nan), x.dtype.type(0)))
    return found


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
        elif x.size > REDUCTIONS[0]:
            found = reduced((name[1:],), "", (x,), dim, keepdim)
            if found is not None:
                return found[0]
        return reduce(x, axes_of(dim, x.ndim), None, None, keepdim)

    return extremum


def _all_of(reduce: Any, name: str) -> Any:
    def extremum(x: Any) -> Any:
        if not x.size:
            _require(x, None, name)
        elif x.size > REDUCTIONS[0]:
            found = reduced((name,), "", (x,), None, False)
            if found is not None:
                return found[0]
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
        found = reduced(("min", "max"), "", (x,), dim, keepdim)
        if found is not None:
            return found
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
        if x.size > PLACES[0]:
            found = reduced((name,), "", (x,), dim, keepdim)
            if found is not None:
                return found[0]
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


def picked(x: Any, index: Any, dim: int) -> Any:
    """The elements at `index` along `dim`; the index may lack that dimension."""
    if not x.ndim:
        return np.broadcast_to(x, index.shape).copy()
    at = positions(x.shape, wrap_dim(dim, x.ndim), index)
    return x.reshape(-1).take(at).reshape(index.shape)


def _scatter_dim(g: Any, index: Any, dim: int, size: tuple[int, ...], repeats: bool = False) -> Any:
    by = indexer() if size and prod(size) > INDEXED[0] and g.ndim == index.ndim == len(size) else None
    found = None if by is None else by.placed(index, g, wrap_dim(dim, len(size)), tuple(size),
                                              "add" if repeats else "set")
    if found is not None:
        return found
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
        if x.size > (REDUCTIONS[0] if x.ndim > 1 else PLACES[0]):
            found = reduced((name, "arg" + name), "", (x,), axis, keepdim)
            if found is not None:
                return found
        index = where(x, axis, keepdims=keepdim)
        if x.ndim == 1:
            return x[index], index
        return picked(x, index, axis), index

    return selected


def _tie_shares(x: Any, out: Any, dim: Any = None, keepdim: bool = False, nan: bool = False) -> Any:
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
    name = "all" if ufunc is np.logical_and else "any"

    def truth(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.size > REDUCTIONS[0] and dim != () and dim != [] and not (dim is None and x.dtype.kind == "b"):
            found = reduced((name,), "", (x,), dim, keepdim)
            if found is not None:
                return found[0].astype(np.uint8) if x.dtype == np.uint8 else found[0]
        axis = () if dim == () or dim == [] else axes_of(dim, x.ndim)
        found = reduce(x, axis, None, None, keepdim)
        return found.astype(np.uint8) if x.dtype == np.uint8 else found

    return truth


_all, _any = _truth(np.logical_and), _truth(np.logical_or)


def _count_nonzero(x: Any, dim: Any = None) -> Any:
    if x.size > REDUCTIONS[0]:
        found = reduced(("sum",), "nonzero", (x,), dim, False)
        if found is not None:
            return found[0]
    if dim is None:
        return np.asarray(np.count_nonzero(x), np.int64)
    return _add(x != 0, axes_of(dim, x.ndim), _INT64)


# ----- moments ---------------------------------------------------------------------------


def _moments(x: Any, dim: Any, correction: float | None, keepdim: bool) -> Any:
    """The variance, and the mean with its dimensions kept."""
    axis = axes_of(dim, x.ndim)
    count = x.size if dim is None else count_along(x.shape, dim)
    mean = add_up(x, axis, True)
    mean = np.asarray(mean / x.dtype.type(count))
    found = reduced(("sum",), "deviations", (x, mean), axis, keepdim) if x.size > SUMS[0] else None
    if found is not None:
        squares = found[0]
    elif x.dtype.kind == "c":
        off = x - mean
        squares = add_up(off.real * off.real + off.imag * off.imag, axis, keepdim)
    else:
        off = x - mean
        squares = add_up(np.multiply(off, off, off) if off.ndim else off * off, axis, keepdim)
    freedom = count - (1 if correction is None else correction)
    return squares / squares.dtype.type(freedom if freedom > 0 else 0), mean


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
    if dim == () or dim == []:
        dim = None
    axis = axes_of(dim, x.ndim)
    if ord == 2 and x.dtype.kind == "f":
        return np.sqrt(square_up(x, axis, keepdim))
    if (ord < 0 or isinf(ord)) and not x.size:
        _require_norm(x, ord, dim)
    if ord == 2 and x.dtype.kind == "c":
        return np.sqrt(add_up(x.real * x.real + x.imag * x.imag, axis, keepdim))
    if ord == 1 and x.size > SUMS[0]:
        found = reduced(("sum",), "sizes", (x,), axis, keepdim)
        if found is not None:
            return found[0]
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
        raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on an empty tensor because the "
                           "operation does not have an identity")
    for axis in wrap_dims(dim, x.ndim):
        if x.shape[axis] == 0:  # PyTorch's text lacks a space
            raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on the dimension {axis}because "
                               "this dimension is empty and the operation does not have an identity")


def _dist(x: Any, y: Any, p: Any = 2) -> Any:
    return _vector_norm(x - y, p)


# ----- logarithms of sums ----------------------------------------------------------------


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    axis = axes_of(dim, x.ndim)
    if not x.size:
        with_zero = add_up(x, axis, keepdim)
        return np.log(with_zero)
    parts = x.real if x.dtype.kind == "c" else x
    found = reduced(("max",), "", (parts,), axis, True) if x.size > SUMS[0] else None
    top = _maximum(parts, axis, None, None, True) if found is None else found[0]
    if not np.isfinite(top).all():
        top = np.where(np.isinf(top), parts.dtype.type(0), top)
    found = reduced(("sum",), "exponentials", (x, top), axis, keepdim) if x.size > SUMS[0] else None
    total = np.log(add_up(np.exp(x - top), axis, keepdim) if found is None else found[0])
    return total + (top if keepdim else top.reshape(np.shape(total)))


PRIMITIVES = {
    "_prod_all": _prod, "prod": _prod, "_product_of_others": _product_of_others,
    "_max_all": _all_of(_maximum, "max"), "_min_all": _all_of(_minimum, "min"),
    "amax": _extremum(_maximum, "amax"), "amin": _extremum(_minimum, "amin"), "aminmax": _aminmax,
    "_max_dim": _selected("max"), "_min_dim": _selected("min"), "argmax": _place("argmax"),
    "argmin": _place("argmin"), "_gather_dim": picked, "_scatter_dim": _scatter_dim, "_tie_shares": _tie_shares,
    "all": _all, "any": _any, "count_nonzero": _count_nonzero,
    "var": _var, "std": _std, "var_mean": _var_mean, "std_mean": _std_mean,
    "linalg_vector_norm": _vector_norm, "dist": _dist, "logsumexp": _logsumexp,
}
