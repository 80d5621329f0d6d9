"""Slices along one dimension, selected, added, copied, filled and reduced by a vector of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import dtypes
from ....kernels import small_indexing
from ....shapes import wrap_dim
from ...compiled import few_positions
from ...compiled.thresholds import INDEXING, SMALL_KERNELS
from ..memory import check_scalar_fits, convert_scalar, copy_as
from .bounds import (
    check_in_self,
    check_range,
    gather_threshold,
    is_broadcast_zero,
    kernels_for,
    out_of_range,
    scalar_name,
)


def _index_select(x: Any, index: Any, dim: int) -> Any:
    axis = wrap_dim(dim, x.ndim)
    if index.dtype.kind != "i" or index.dtype.itemsize < 4:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not x.ndim:
        if index.size != 1:
            raise RuntimeError("index_select(): Index to scalar can have only 1 value, got "
                               f"{index.size} value(s)")
        check_in_self(index, 1)
        return np.array(x, copy=True)
    positions = index.reshape(-1)
    few = few_positions() if SMALL_KERNELS[0] else None
    result = None if few is None else few.take_slices(x, positions, axis)
    if result is not None:
        return result
    kernels = kernels_for(positions.size * x.size // max(1, x.shape[axis]), positions, gather_threshold(axis))
    if kernels is not None:
        shape = (*x.shape[:axis], positions.size, *x.shape[axis + 1:])
        result = kernels.take(x, kernels.index_along(positions, axis, x.ndim), axis, shape)
        if result is not None:
            return result
    size = x.shape[axis]
    if axis == 1 or (not x.size and x.ndim > 1):  # PyTorch's message is its kernel's
        if not size and positions.size:
            raise RuntimeError("index_select(): self indexing axis dim should be positive")
        if positions.size and out_of_range(positions, size):
            wrong = (positions < 0) | (positions >= size)
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={positions[wrong][0]} axis_dim={size}")
    else:
        check_in_self(positions, size)
    return x.take(positions, axis)


def _rows(x: Any, dim: int) -> Any:
    """Return a view of `x`, of at least one dimension, with `dim` first."""
    if not x.ndim:
        return x.reshape(1)
    axis = wrap_dim(dim, x.ndim)
    return x if not axis else x.transpose(axis, *range(axis), *range(axis + 1, x.ndim))


def _check_accumulation(x: Any, index: Any, source: Any, dim: int, what: str) -> int:
    """Return the axis of an `index_add` or `index_reduce`, whose arguments are checked in PyTorch's order."""
    axis = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise IndexError(f"{what}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
                         f"{scalar_name(index)} and size: {list(index.shape)}")
    if index.dtype.kind != "i" or index.dtype.itemsize < 4:
        raise RuntimeError(f"{what}_(): Expected dtype int32/int64 for index but got: {scalar_name(index)}")
    if source.dtype != x.dtype:
        raise RuntimeError(f"{what}_(): self ({scalar_name(x)}) and source ({scalar_name(source)}) must have the "
                           "same scalar type")
    if axis and axis >= source.ndim:
        raise RuntimeError(f"{what}_(): Indexing dim {axis} is out of bounds of the source tensor with dim "
                           f"{source.ndim}")
    if index.size != (source.shape[axis] if source.ndim else 1):
        if not source.ndim:
            raise IndexError(f"Dimension specified as {axis} but tensor has no dimensions")
        raise RuntimeError(f"{what}_(): Number of indices ({index.size}) should be equal to source.size(dim): "
                           f"({source.shape[axis]}), for dim: {axis}")
    rest, others = list(x.shape), list(source.shape)
    if rest and others:
        del rest[axis], others[axis]
    if others != rest:
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. Got "
                           f"self.shape = {list(x.shape)} source.shape = {list(source.shape)}")
    return axis


def _check_copy(x: Any, index: Any, source: Any, dim: int) -> int:
    """Return the axis of an `index_copy`, whose arguments are checked in PyTorch's order."""
    axis = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not source.ndim and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if source.ndim != x.ndim and source.ndim and x.ndim:
        raise IndexError("index_copy_(): When source and destination are not scalars, their dimensionality must "
                         f"match. Source dimensionality ({source.ndim}), destination dimensionality ({x.ndim})")
    if index.dtype != np.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {scalar_name(index)}")
    if source.dtype != x.dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype, but got (self) "
                           f"{scalar_name(x)} and (source) {scalar_name(source)}")
    rest = [n for a, n in enumerate(x.shape) if a != axis]
    others = [n for a, n in enumerate(source.shape) if a != axis]
    if others != rest:
        raise RuntimeError("index_copy_(): Source/destination tensor must have same slice shapes. Destination "
                           f"slice shape: {' '.join(map(str, rest))} at dimension {axis} and source slice shape: "
                           f"{' '.join(map(str, others))} at dimension 0.")
    if source.ndim and index.size != source.shape[axis]:
        raise IndexError(f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) "
                         f"({source.shape[axis]})")
    return axis


def _index_add(x: Any, index: Any, source: Any, dim: int, alpha: Any = 1) -> Any:
    few = few_positions() if SMALL_KERNELS[0] and alpha == 1 and index.ndim == 1 and x.ndim else None
    if few is not None and x.dtype is source.dtype:
        axis = wrap_dim(dim, x.ndim)
        result = None
        if is_broadcast_zero(x):
            result = few.add_slices(index, source, axis, x.shape)
        elif not axis and index.dtype == np.int64 and x.flags.c_contiguous and x.__class__ is np.ndarray:
            result = few.add_rows(x, index, source, x.shape)
        if result is not None:
            return result
    if alpha == 1 and x.ndim and source.size <= INDEXING[0]:
        result = small_indexing.index_add(x, index, source, wrap_dim(dim, x.ndim))
        if result is not None:
            return result
    from ....kernels.scatter import index_add

    axis = _check_accumulation(x, index, source, dim, "index_add")
    if x.ndim > 1 and not x.size:
        return x.copy()  # of no elements: PyTorch does not look at the indices
    if x.ndim > 1 and axis in (0, x.ndim - 1):
        check_range(index.reshape(-1), x.shape[axis], axis)
    else:
        check_in_self(index, x.shape[axis] if x.ndim else 1)
    if alpha != 1:
        wide = source.astype(np.int64) if source.dtype.kind in "iub" else dtypes.widen(source)
        if x.dtype in dtypes.NARROW:
            alpha = dtypes.widen(dtypes.cast(np.asarray(alpha, np.float32), x.dtype))
        source = dtypes.cast(wide * alpha, x.dtype)
    if x.dtype in dtypes.NARROW and (alpha != 1 or x.ndim < 2) and source.size:
        return _add_rounded(x, index, source, axis)
    kernels = kernels_for(source.size, index) if x.ndim and source.ndim else None
    if kernels is not None and x.dtype in dtypes.NARROW:  # added in float32, rounded once
        return dtypes.cast(_index_add(dtypes.widen(x), index, dtypes.widen(source), dim), x.dtype)
    if kernels is not None:
        result = kernels.put(x, kernels.index_along(index, axis, x.ndim), source, axis, "add")
        if result is not None:
            return result
    if x.dtype.kind == "b":
        return index_add(x.astype(np.int64), axis, index, source.astype(np.int64)) != 0
    return index_add(np.array(x, order="C", copy=True), axis, index, source)


def _add_rounded(x: Any, index: Any, source: Any, axis: int) -> Any:
    """Return a copy of a 16-bit `x` with slices added, where each sum is rounded, as PyTorch adds scaled slices."""
    from ....kernels.scatter import scatter_reduce

    target = np.array(np.atleast_1d(x), order="C", copy=True)
    source = source.reshape(source.shape or 1)
    full_index = np.broadcast_to(index.reshape(-1, *(1,) * (target.ndim - 1 - axis)), source.shape)
    return scatter_reduce(target, axis, full_index, source, "sum", rounded=True).reshape(x.shape)


def _index_copy(x: Any, index: Any, source: Any, dim: int) -> Any:
    axis = _check_copy(x, index, source, dim)
    size = x.shape[axis] if x.ndim else 1
    if not x.size and size:
        return x.copy()
    if index.size and out_of_range(index, size):
        flat = index.reshape(-1)
        raise IndexError(f"index_copy_(): index {flat[(flat < 0) | (flat >= size)][0]} is out of bounds for dimension "
                         f"{axis} with size {size}")
    out = np.array(x, order="C", copy=True)
    _rows(out, dim)[index.reshape(-1)] = _rows(source, dim if source.ndim else 0)
    return out


def _index_fill(x: Any, index: Any, value: Any, dim: int) -> Any:
    if value.__class__ is not np.ndarray:
        few = few_positions() if SMALL_KERNELS[0] and value.__class__ is int and not value and (
            x.ndim and index.ndim == 1) else None
        result = None if few is None else few.clear_slices(x, index, wrap_dim(dim, x.ndim))
        if result is not None:
            return result
        check_scalar_fits(value, dtypes.of(x.dtype))
    if index.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    axis = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    size = x.shape[axis] if x.ndim else 1
    if not x.size and size:
        return x.copy()
    if index.size and (index.min() < -size or index.max() >= size):
        flat = index.reshape(-1)
        raise IndexError(f"index {flat[(flat < -size) | (flat >= size)][0]} is out of bounds for dimension {axis} with "
                         f"size {size}")
    out = copy_as(x)
    _rows(out, dim)[index.reshape(-1)] = convert_scalar(value, x.dtype)
    return out


def _index_reduce(x: Any, index: Any, source: Any, dim: int, reduce: str, include_self: bool = True) -> Any:
    from ....kernels.scatter import scatter_reduce

    axis = _check_accumulation(x, index, source, dim, "index_reduce")
    check_in_self(index, x.shape[axis] if x.ndim else 1)
    full_index = np.broadcast_to(index.reshape(-1, *(1,) * (max(x.ndim, 1) - 1 - axis)), np.atleast_1d(source).shape)
    return scatter_reduce(np.array(x, order="C", copy=True), axis, full_index, source, reduce, include_self,
                          rounded=True)


PRIMITIVES: dict[str, Any] = {
    "index_select": _index_select, "index_add": _index_add, "index_copy": _index_copy, "index_fill": _index_fill,
    "index_reduce_kernel": _index_reduce,
}
