"""Gathers and scatters: an index of as many dimensions as the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import dtypes
from ....kernels import small_indexing
from ....shapes import wrap_dim
from ...compiled import few_positions
from ...compiled.thresholds import INDEXING, SMALL_KERNELS
from ..memory import check_scalar_fits, convert_scalar
from .bounds import check_range, is_broadcast_zero, kernels_for


def _grid(shape: Sequence[int], axis: int, index: Any) -> tuple[Any, ...]:
    """Return open index arrays over `shape`, with `index` along one axis."""
    n = len(shape)
    return tuple(index if a == axis else np.arange(shape[a]).reshape(-1, *(1,) * (n - 1 - a)) for a in range(n))


def _slice_to(x: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Return `x` sliced to `shape` in all axes but one."""
    return x[tuple([slice(None) if a == axis else slice(n) for a, n in enumerate(shape)])]


def _check_index_shape(index: Any, x: Any, axis: int, what: str) -> None:
    if max(index.ndim, 1) != max(x.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input "
                           "tensor" if what == "gather" else
                           "Index tensor must have the same number of dimensions as self tensor")
    for a, (n, m) in enumerate(zip(index.shape, x.shape, strict=False)):
        if a != axis and n > m:
            if what == "gather":
                raise RuntimeError(f"Size does not match at dimension {a} expected index {list(index.shape)} to be no "
                                   f"larger than self {list(x.shape)} apart from dimension {axis}")
            raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart "
                               f"from dimension {axis}")


def _fits_beside(index: Sequence[int], shape: Sequence[int], axis: int) -> bool:
    """Whether an index is not larger than an array in all axes but one."""
    for a, n in enumerate(index):  # noqa: SIM110 - a generator takes twice as long
        if n > shape[a] and a != axis:
            return False
    return True


def _gather(x: Any, index: Any, dim: int, sparse_grad: bool = False) -> Any:
    axis = wrap_dim(dim, x.ndim)
    few = few_positions() if SMALL_KERNELS[0] else None
    result = None if few is None else few.take_along(x, index, axis)
    if result is not None:
        return result
    if x.ndim and index.size <= INDEXING[0] and index.ndim == x.ndim and _fits_beside(index.shape, x.shape, axis):
        result = small_indexing.gather(x, index, axis)
        if result is not None:
            return result
    if not index.size:
        return np.empty(index.shape, x.dtype)
    if index.dtype.kind != "i" or index.dtype.itemsize < 4:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    _check_index_shape(index, x, axis, "gather")
    if not x.ndim or not index.ndim:
        flat = np.reshape(index, -1)
        check_range(flat, x.size, 0)
        return np.reshape(x, -1)[flat].reshape(index.shape)
    kernels = kernels_for(index.size, index)
    result = None if kernels is None else kernels.take(_slice_to(x, index.shape, axis), index, axis, index.shape)
    if result is not None:
        return result
    check_range(index, x.shape[axis], axis)
    if axis == x.ndim - 1 and x.flags.c_contiguous:
        x = x[tuple([slice(n) for n in index.shape[:-1]])]
        starts = np.arange(0, x.size, x.shape[-1]).reshape(*index.shape[:-1], 1) if x.flags.c_contiguous else None
        if starts is not None:
            return x.reshape(-1).take(index + starts)
    return x[_grid(index.shape, axis, index)]


def scatter_axis(x: Any, index: Any, source: Any, dim: int, what: str) -> int:
    """Return the axis of `dim` after a check of the dtypes and shapes of a scatter; `source` is None for a number.

    Raises:
        IndexError, RuntimeError: they do not fit (PyTorch's texts).
    """
    axis = wrap_dim(dim, x.ndim)
    if index.size and (index.dtype.kind != "i" or index.dtype.itemsize < 4):
        raise RuntimeError(f"{what}(): Expected dtype int32/int64 for index")
    if source is not None and source.dtype != x.dtype:
        raise RuntimeError(f"{what}(): Expected self.dtype to be equal to src.dtype")
    if index.size and source is None:
        _check_index_shape(index, x, axis, what)
    elif index.size:
        if max(index.ndim, 1) != max(x.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
        fits = all(n <= m for a, (n, m) in enumerate(zip(index.shape, x.shape, strict=False)) if a != axis)
        if fits:
            if not 0 < source.ndim < index.ndim:
                fits = all(n <= m for n, m in zip(index.shape or (1,), source.shape or (1,), strict=False))
            elif all(n <= m for n, m in zip(index.shape, source.shape, strict=False)):
                raise IndexError(f"Dimension out of range (expected to be in range of [{-source.ndim}, "
                                 f"{source.ndim - 1}], but got {source.ndim})")
        if max(source.ndim, 1) != max(index.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        if not fits:
            raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart "
                               f"from dimension {axis} and to be no larger size than src {list(source.shape)}")
    return axis


def _put_by_kernel(x: Any, index: Any, source: Any, axis: int, op: str) -> Any:
    """Return a copy of `x` with an array or a scalar written or added at the index; None where there is no kernel."""
    kernels = kernels_for(index.size, index) if x.ndim and index.ndim else None
    if kernels is None:
        return None
    if source.__class__ is np.ndarray and source.ndim:
        source = source[tuple([slice(n) for n in index.shape])]
    else:
        source = np.broadcast_to(np.asarray(source).astype(x.dtype), index.shape)
    return kernels.put(x, index, source, axis, op)


def _scatter(x: Any, index: Any, src: Any, dim: int) -> Any:
    """Return a copy of `x` with `src`, an array or a scalar, written at the index along `dim`."""
    if src.__class__ is not np.ndarray:
        few = few_positions() if SMALL_KERNELS[0] and src.__class__ is int and not src and x.ndim else None
        result = None if few is None else few.clear_along(x, index, wrap_dim(dim, x.ndim))
        if result is not None:
            return result
    axis = scatter_axis(x, index, src if src.__class__ is np.ndarray else None, dim, "scatter")
    if src.__class__ is not np.ndarray:
        check_scalar_fits(src, dtypes.of(x.dtype))
    result = _put_by_kernel(x, index, src if src.__class__ is np.ndarray else convert_scalar(src, x.dtype), axis, "set")
    if result is not None:
        return result
    out = np.array(x, order="C", copy=True)
    if not index.size:
        return out
    target, index = np.atleast_1d(out), np.atleast_1d(index)
    check_range(index, target.shape[axis], axis)
    if src.__class__ is np.ndarray:
        source = np.atleast_1d(src)[tuple(slice(n) for n in index.shape)]
    else:
        source = convert_scalar(src, x.dtype)
    target[_grid(index.shape, axis, index)] = source
    return out


def _scatter_reduce(x: Any, index: Any, src: Any, dim: int, reduce: str, include_self: bool = True,
                    what: str = "scatter") -> Any:
    if reduce == "sum" and include_self and src.__class__ is np.ndarray and index.ndim and index.ndim == x.ndim and (
            index.size <= INDEXING[0] or SMALL_KERNELS[0]):
        axis = wrap_dim(dim, x.ndim)
        few = few_positions() if SMALL_KERNELS[0] and is_broadcast_zero(x) else None
        result = None if few is None or index.shape != src.shape or x.dtype is not src.dtype else few.put_along(
            index, src, axis, x.shape, few.ADD)
        if result is not None:
            return result
        if index.size <= INDEXING[0] and _fits_beside(index.shape, x.shape, axis):
            result = small_indexing.scatter_add(x, index, src, axis)
            if result is not None:
                return result
    from ....kernels.scatter import scatter_reduce

    axis = scatter_axis(x, index, src if src.__class__ is np.ndarray else None, dim, what)
    if src.__class__ is not np.ndarray:
        check_scalar_fits(src, dtypes.of(x.dtype))
        src = np.broadcast_to(np.asarray(convert_scalar(src, x.dtype)).astype(x.dtype), index.shape)
    if reduce == "sum" and include_self and x.dtype in dtypes.NARROW and index.size > INDEXING[0]:
        wide = _put_by_kernel(dtypes.widen(x), index, dtypes.widen(src), axis, "add")
        if wide is not None:
            return dtypes.cast(wide, x.dtype)
    result = _put_by_kernel(x, index, src, axis, "add") if reduce == "sum" and include_self else None
    if result is not None:
        return result
    out = np.array(x, order="C", copy=True)
    if x.dtype.kind == "b" and reduce in ("sum", "prod", "mean"):
        wide = scatter_reduce(out.astype(np.int64), axis, index, src.astype(np.int64), reduce, include_self)
        return wide != 0
    return scatter_reduce(out, axis, index, src, reduce, include_self)


def _scatter_add(x: Any, index: Any, src: Any, dim: int) -> Any:
    return _scatter_reduce(x, index, src, dim, "sum", what="scatter")


PRIMITIVES: dict[str, Any] = {
    "gather": _gather, "scatter": _scatter, "scatter_reduce": _scatter_reduce, "scatter_add": _scatter_add,
}
