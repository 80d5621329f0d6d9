"""Indexing, masking, gather and scatter on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Any

import numpy as np

from ... import dtypes
from ...kernels import small_indexing
from ...kernels.memory_format import noted
from ...shapes import broadcast_shapes, wrap_dim
from ...warning_location import alert_not_deterministic
from ..compiled import copy_kernels, few_positions, indexing_kernels
from ..compiled.thresholds import COPIES, INDEXING, MASKING, SMALL_KERNELS
from .memory import check_scalar_fits, convert_scalar, copy_as

_least, _largest = np.minimum.reduce, np.maximum.reduce  # `index.min()` goes through a function of Python


def _grid(shape: Sequence[int], axis: int, index: Any) -> tuple[Any, ...]:
    """Return open index arrays over `shape`, with `index` along one axis."""
    n = len(shape)
    return tuple(index if a == axis else np.arange(shape[a]).reshape(-1, *(1,) * (n - 1 - a)) for a in range(n))


#: number of indices up to which NumPy's own check of bounds and of signs is faster than one before
_FEW_INDICES = 1024
#: negative indices are large as unsigned ones: one reduction finds whether any is out of range
_UNSIGNED = {np.dtype(np.int64): np.dtype(np.uint64), np.dtype(np.int32): np.dtype(np.uint32)}


def out_of_range(index: Any, size: int) -> bool:
    """Return whether an index of at least one element is negative, or at least `size`."""
    unsigned = _UNSIGNED.get(index.dtype)
    if unsigned is None:
        return bool(_least(index, None) < 0 or _largest(index, None) >= size)
    return bool(_largest(index.view(unsigned), None) >= size)


def _check_range(index: Any, size: int, dim: int) -> None:
    if index.size and out_of_range(index, size):
        wrong = (index < 0) | (index >= size)
        raise RuntimeError(f"index {index[wrong].flat[0]} is out of bounds for dimension {dim} with size {size}")


def _kernels_for(size: int, index: Any, threshold: list[int] = INDEXING) -> Any:
    """Return the compiled indexing kernels for this many elements; None where NumPy indexes."""
    return indexing_kernels() if size > threshold[0] and index.flags.c_contiguous else None


def _gather_threshold(axis: int) -> list[int]:
    """Return the threshold for compiled gathers of slices: NumPy is as fast along the first axis."""
    return INDEXING if axis else COPIES


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


def _is_broadcast_zero(x: Any) -> bool:
    """Whether an array is one 0 that is broadcast, as rules of gradients make it."""
    if x.dtype.kind != "f" or not x.ndim or any(x.strides) or not x.size:
        return False
    number = x.item(0)
    return not number and copysign(1.0, number) > 0


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
        _check_range(flat, x.size, 0)
        return np.reshape(x, -1)[flat].reshape(index.shape)
    kernels = _kernels_for(index.size, index)
    result = None if kernels is None else kernels.take(_slice_to(x, index.shape, axis), index, axis, index.shape)
    if result is not None:
        return result
    _check_range(index, x.shape[axis], axis)
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
    kernels = _kernels_for(index.size, index) if x.ndim and index.ndim else None
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
    _check_range(index, target.shape[axis], axis)
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
        few = few_positions() if SMALL_KERNELS[0] and _is_broadcast_zero(x) else None
        result = None if few is None or index.shape != src.shape or x.dtype is not src.dtype else few.put_along(
            index, src, axis, x.shape, few.ADD)
        if result is not None:
            return result
        if index.size <= INDEXING[0] and _fits_beside(index.shape, x.shape, axis):
            result = small_indexing.scatter_add(x, index, src, axis)
            if result is not None:
                return result
    from ...kernels.scatter import scatter_reduce

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
        _check_in_self(index, 1)
        return np.array(x, copy=True)
    positions = index.reshape(-1)
    few = few_positions() if SMALL_KERNELS[0] else None
    result = None if few is None else few.take_slices(x, positions, axis)
    if result is not None:
        return result
    kernels = _kernels_for(positions.size * x.size // max(1, x.shape[axis]), positions, _gather_threshold(axis))
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
        _check_in_self(positions, size)
    return x.take(positions, axis)


def _check_in_self(index: Any, size: int) -> None:
    if index.size and out_of_range(index, size):
        raise IndexError("index out of range in self")


def _rows(x: Any, dim: int) -> Any:
    """Return a view of `x`, of at least one dimension, with `dim` first."""
    if not x.ndim:
        return x.reshape(1)
    axis = wrap_dim(dim, x.ndim)
    return x if not axis else x.transpose(axis, *range(axis), *range(axis + 1, x.ndim))


def _scalar_name(x: Any) -> str:
    return dtypes.of(x.dtype).scalar_name


def _check_accumulation(x: Any, index: Any, source: Any, dim: int, what: str) -> int:
    """Return the axis of an `index_add` or `index_reduce`, whose arguments are checked in PyTorch's order."""
    axis = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise IndexError(f"{what}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
                         f"{_scalar_name(index)} and size: {list(index.shape)}")
    if index.dtype.kind != "i" or index.dtype.itemsize < 4:
        raise RuntimeError(f"{what}_(): Expected dtype int32/int64 for index but got: {_scalar_name(index)}")
    if source.dtype != x.dtype:
        raise RuntimeError(f"{what}_(): self ({_scalar_name(x)}) and source ({_scalar_name(source)}) must have the "
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
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {_scalar_name(index)}")
    if source.dtype != x.dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype, but got (self) "
                           f"{_scalar_name(x)} and (source) {_scalar_name(source)}")
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
    few = few_positions() if SMALL_KERNELS[0] and alpha == 1 and index.ndim == 1 and _is_broadcast_zero(x) else None
    if few is not None and x.dtype is source.dtype:
        result = few.add_slices(index, source, wrap_dim(dim, x.ndim), x.shape)
        if result is not None:
            return result
    if alpha == 1 and x.ndim and source.size <= INDEXING[0]:
        result = small_indexing.index_add(x, index, source, wrap_dim(dim, x.ndim))
        if result is not None:
            return result
    from ...kernels.scatter import index_add

    axis = _check_accumulation(x, index, source, dim, "index_add")
    if x.ndim > 1 and not x.size:
        return x.copy()  # of no elements: PyTorch does not look at the indices
    if x.ndim > 1 and axis in (0, x.ndim - 1):
        _check_range(index.reshape(-1), x.shape[axis], axis)
    else:
        _check_in_self(index, x.shape[axis] if x.ndim else 1)
    if alpha != 1:
        wide = source.astype(np.int64) if source.dtype.kind in "iub" else dtypes.widen(source)
        if x.dtype in dtypes.NARROW:
            alpha = dtypes.widen(dtypes.cast(np.asarray(alpha, np.float32), x.dtype))
        source = dtypes.cast(wide * alpha, x.dtype)
    if x.dtype in dtypes.NARROW and (alpha != 1 or x.ndim < 2) and source.size:
        return _add_rounded(x, index, source, axis)
    kernels = _kernels_for(source.size, index) if x.ndim and source.ndim else None
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
    from ...kernels.scatter import scatter_reduce

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
    from ...kernels.scatter import scatter_reduce

    axis = _check_accumulation(x, index, source, dim, "index_reduce")
    _check_in_self(index, x.shape[axis] if x.ndim else 1)
    full_index = np.broadcast_to(index.reshape(-1, *(1,) * (max(x.ndim, 1) - 1 - axis)), np.atleast_1d(source).shape)
    return scatter_reduce(np.array(x, order="C", copy=True), axis, full_index, source, reduce, include_self,
                          rounded=True)


def _index_list(indices: tuple[Any, ...]) -> Sequence[Any]:
    """Return the indices, given separately or as one list."""
    return indices[0] if len(indices) == 1 and indices[0].__class__ is list else indices


def _single_index(indices: Sequence[Any]) -> tuple[Any, int] | None:
    """Return the index and its dimension if there is exactly one, of integers."""
    given = [(index, axis) for axis, index in enumerate(indices) if index is not None]
    return given[0] if len(given) == 1 and given[0][0].dtype.kind == "i" else None


def _index(x: Any, *indices: Any) -> Any:
    """Return the elements at index arrays; None stands for an entire dimension."""
    only = _single_index(_index_list(indices)) if x.size > INDEXING[0] else None
    if only is not None:
        index, axis = only
        size = index.size * (x.size // x.shape[axis])
        kernels = _kernels_for(size, index, _gather_threshold(axis))
        if kernels is not None:
            lead, rest = x.shape[:axis], x.shape[axis + 1:]
            result = kernels.take(x, kernels.index_along(index, axis, x.ndim), axis, (*lead, index.size, *rest), True)
            if result is not None:
                return result.reshape(*lead, *index.shape, *rest)
    elif x.size and _are_few(_index_list(indices)):
        try:
            result = x[tuple([slice(None) if index is None else index for index in _index_list(indices)])]
            return result if result.__class__ is np.ndarray else np.asarray(result)
        except IndexError:
            pass  # the checks below raise PyTorch's error
    key = _key(x, _index_list(indices))
    flat = _flat_positions(x, key) if x.size > INDEXING[0] else None
    result = x[key] if flat is None else x.reshape(-1).take(flat)
    return result if result.__class__ is np.ndarray else np.asarray(result)


def _are_few(indices: Sequence[Any]) -> bool:
    """Return whether NumPy may be given the indices as they are: few integers, at least one each."""
    for index in indices:
        if index is not None and not (0 < index.size <= _FEW_INDICES and index.dtype.kind == "i"):
            return False
    return True


def _flat_positions(x: Any, key: tuple[Any, ...]) -> Any:
    """Return the positions in the flat array of a key with an index of one shape, int64, for each dimension, or None.

    None, too, for negative indices: NumPy wraps them as fast.
    """
    first = key[0]
    if len(key) != x.ndim or len(key) < 2 or not x.flags.c_contiguous or any(
            k.__class__ is not np.ndarray or k.shape != first.shape or k.dtype != np.int64 for k in key) or (
            not first.size or any(_least(k, None) < 0 for k in key)):
        return None
    flat = first * x.shape[1]
    flat += key[1]
    for size, k in zip(x.shape[2:], key[2:], strict=True):
        flat *= size
        flat += k
    return flat


def _key(x: Any, indices: Sequence[Any]) -> tuple[Any, ...]:
    """Return the indices as NumPy's key; raise PyTorch's error where they are out of bounds."""
    key: list[Any] = []
    axis = 0
    if [True for index in indices if index is not None and not index.size]:  # of no elements: PyTorch does not look
        shape = _common_shape([index.shape for index in indices if index is not None])
        return tuple(slice(None) if index is None else np.zeros(shape, np.int64) for index in indices)
    for index in indices:
        if index is None:
            key.append(slice(None))
            axis += 1
            continue
        if index.dtype.kind == "b":  # a mask, as handlers of `__torch_dispatch__` pass it on
            key.extend(index.nonzero())
            axis += index.ndim
            continue
        size = x.shape[axis]
        if index.size:
            if not size and x.size == 0:
                raise IndexError("index is out of bounds for dimension with size 0")
            low, high = _least(index, None), _largest(index, None)
            if (low < -size or high >= size) and x.size == 0:
                index = np.zeros_like(index)  # of no elements: PyTorch does not look
            elif low < -size or high >= size:
                raise _out_of_bounds(x.shape, indices)
        key.append(index)
        axis += 1
    return tuple(key)


def _common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                         + ", ".join(str(list(s)) for s in shapes)) from None


def _out_of_bounds(shape: Sequence[int], indices: Sequence[Any]) -> IndexError:
    """The error about the first indexed element, in row-major order, that is out of bounds in a dimension."""
    sizes = [size for size, index in zip(shape, indices, strict=False) if index is not None]
    known = [index for index in indices if index is not None]
    shape = _common_shape([index.shape for index in known])
    arrays = [np.broadcast_to(index, shape) for index in known]
    wrong = [(index < -size) | (index >= size) for index, size in zip(arrays, sizes, strict=True)]
    first = np.any(wrong, axis=0).argmax()
    dim = next(i for i, each in enumerate(wrong) if each.flat[first])  # PyTorch counts indexed dimensions only
    return IndexError(f"index {arrays[dim].flat[first]} is out of bounds for dimension {dim} with size {sizes[dim]}")


def _index_put(x: Any, values: Any, *indices: Any, accumulate: bool = False) -> Any:
    out = copy_as(x)
    put_at(out, values, _index_list(indices), accumulate)
    return out


def check_values_fit(target: Any, values: Any, indices: Sequence[Any]) -> None:
    """Check, without a look at the indices themselves, that values broadcast to the shape that is indexed.

    Raises:
        RuntimeError: they do not (PyTorch's text).
        IndexError: the indices do not broadcast, or are of a dimension without elements.
    """
    shape = _common_shape([np.shape(i) for i in indices if i is not None])
    if 0 not in shape and any(i is not None and not n for i, n in zip(indices, target.shape, strict=False)):
        raise IndexError("index is out of bounds for dimension with size 0")
    key = tuple(slice(None) if i is None else np.zeros(shape, np.int64) for i in indices)
    full = np.broadcast_to(np.zeros((), np.bool_), target.shape)[key].shape
    try:
        if np.broadcast_shapes(full, values.shape) != full:
            raise ValueError
    except ValueError:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
                           f"indexing result of shape {list(full)}") from None


def put_at(target: Any, values: Any, indices: Sequence[Any], accumulate: bool) -> None:
    """Write or add `values` at advanced indices of an array, in place.

    Raises:
        RuntimeError: the values do not broadcast to the indexed shape (PyTorch's text).
    """
    try:
        key = _key(target, indices)
    except IndexError:
        check_values_fit(target, values, indices)
        raise
    arrays = [k for k in key if k.__class__ is np.ndarray]
    try:
        if arrays and values.ndim > max(k.ndim for k in arrays) + target.ndim - len(arrays):
            raise ValueError  # NumPy ignores leading dimensions of size 1
        if accumulate:
            from ...kernels.scatter import index_put_accumulate

            if target.dtype.kind == "b":
                wide = index_put_accumulate(target.astype(np.int64), key, values.astype(np.int64))
                target[...] = wide != 0
            else:
                index_put_accumulate(target, key, values)
        else:
            target[key] = values
    except ValueError:
        full = np.empty(target.shape, np.bool_)[key].shape
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
                           f"indexing result of shape {list(full)}") from None


def _add_at_indices(x: Any, *indices: Any, size: tuple[int, ...]) -> Any:
    """Return zeros of shape `size` with `x` added at the indices, the transpose of `index`."""
    few = few_positions() if SMALL_KERNELS[0] else None
    result = None if few is None else few.add_at_indices(_index_list(indices), x, tuple(size))
    if result is not None:
        return result
    if x.size <= INDEXING[0]:
        result = small_indexing.add_at_indices(x, _index_list(indices), tuple(size))
        if result is not None:
            return result
    from ...kernels.scatter import index_put_accumulate

    only = _single_index(_index_list(indices)) if x.size > INDEXING[0] else None
    kernels = None if only is None else _kernels_for(x.size, only[0])
    if only is not None and kernels is not None:
        index, axis = only
        source = x.reshape(*size[:axis], index.size, *size[axis + 1:])
        along = kernels.index_along(index, axis, len(size))
        result = kernels.put_into_zeros(along, source, axis, tuple(size), "add", True)
        if result is not None:
            return result
    out = np.zeros(size, x.dtype)
    return index_put_accumulate(out, _key(out, _index_list(indices)), x)


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    shape = x.shape if mask.shape == x.shape else broadcast_shapes(mask.shape, x.shape)
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{dtypes.C_NAMES[dtypes.of(mask.dtype).name]}")
    if value.__class__ is np.ndarray and value.ndim:
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{value.ndim} dimension(s).")
    if value.__class__ is not np.ndarray:
        check_scalar_fits(value, dtypes.of(x.dtype))
    elif value.dtype.kind == "c" and x.dtype.kind != "c":
        check_scalar_fits(value.item(), dtypes.of(x.dtype))
    out = np.empty_like(x) if shape == x.shape else np.empty(shape, x.dtype)
    kernels = copy_kernels() if out.size > MASKING[0] else None
    if kernels is not None and kernels.fill_masked(
            out, x, mask, np.asarray(convert_scalar(value, x.dtype)).astype(x.dtype)):
        return out
    out[...] = x
    out[mask if mask.shape == shape else np.broadcast_to(mask, shape)] = convert_scalar(value, x.dtype)
    return out


def _masked_select(x: Any, mask: Any) -> Any:
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(x.shape, mask.shape)
    if x.shape == mask.shape:
        return elements_at_mask(x, mask)
    return np.broadcast_to(x, shape)[np.broadcast_to(mask, shape)]


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{dtypes.of(mask.dtype).scalar_name}")
    if source.dtype != x.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got"
                           f"{dtypes.of(x.dtype).scalar_name} and {dtypes.of(source.dtype).scalar_name}")
    if x.shape == mask.shape:
        out = np.array(x, order="C", copy=True)
    else:
        shape = broadcast_shapes(x.shape, mask.shape)
        mask = np.broadcast_to(mask, shape)
        out = np.array(np.broadcast_to(x, shape), order="C", copy=True)
    count = int(np.count_nonzero(mask))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    out[mask] = np.reshape(source, -1)[:count]
    return out


def _masked_scatter_backward(g: Any, mask: Any, size: tuple[int, ...]) -> Any:
    """Return the vjp of `masked_scatter` by its source: the masked elements first, then zeros."""
    selected = g[np.broadcast_to(mask, g.shape)]
    out = np.zeros(int(np.prod(size, dtype=np.int64)), g.dtype)
    out[: selected.size] = selected
    return out.reshape(size)


def _take(x: Any, index: Any) -> Any:
    if index.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {dtypes.of(index.dtype).scalar_name}")
    if not x.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    _check_flat_range(index, x.size)
    return np.reshape(x, -1)[np.ascontiguousarray(index) if index.ndim else index]  # the result is row-major


def _check_flat_range(index: Any, size: int) -> None:
    if index.size and (index.min() < -size or index.max() >= size):
        wrong = index[(index < -size) | (index >= size)].flat[0] if index.ndim else index
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {size} elements.")


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    if not accumulate:
        alert_not_deterministic("put_")
    if index.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {dtypes.of(index.dtype).scalar_name}")
    if source.dtype != x.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{dtypes.of(x.dtype).scalar_name} and source.dtype = "
                           f"{dtypes.of(source.dtype).scalar_name}")
    if index.size != source.size:
        raise IndexError("put_(): Expected source and index to have the same number of elements, but got "
                         "source.numel() "
                         f"= {source.size}, index.numel() = {index.size}")
    _check_flat_range(index, x.size)
    out = np.array(x, order="C", copy=True)
    flat, positions, values = out.reshape(-1), index.reshape(-1), source.reshape(-1)
    if not accumulate:
        flat[positions] = values
    elif x.dtype.kind == "V":  # rounded after each addition: the first elements of all positions, the second ones, ...
        positions = np.where(positions < 0, positions + flat.size, positions)
        order = np.argsort(positions, kind="stable")
        places = positions[order]
        first = np.concatenate([[True], places[1:] != places[:-1]]) if places.size else np.zeros(0, bool)
        turn = np.arange(places.size) - np.maximum.accumulate(np.where(first, np.arange(places.size), 0))
        for k in range(int(turn.max(initial=-1)) + 1):
            at = order[turn == k]
            flat[positions[at]] = dtypes.cast(dtypes.widen(flat[positions[at]]) + dtypes.widen(values[at]), x.dtype)
    else:
        np.add.at(flat, positions, values)
    if x.flags.c_contiguous:
        return out
    result = copy_as(x)
    result[...] = out
    return result


def nonzero_places(x: Any) -> Any:
    """Return the indices of the elements that are not 0: (dimensions, elements), int64.

    NumPy's `nonzero` is fast for one dimension, and for few elements, only: positions in a flat array are divided by
    the sizes.
    """
    if x.ndim < 2 or x.size <= 512 or not x.flags.c_contiguous:
        return np.array(x.nonzero(), np.int64)
    flat = x.reshape(-1).nonzero()[0]
    places = np.empty((x.ndim, flat.size), np.int64)
    places[-1] = flat
    for axis in range(x.ndim - 1, 0, -1):
        np.floor_divide(places[axis], x.shape[axis], out=places[axis - 1])
        places[axis] -= places[axis - 1] * x.shape[axis]
    return places


POSITIONS_FROM = 512  # elements from which finding positions first is faster


def elements_at_mask(x: Any, mask: Any) -> Any:
    """Return `x[mask]`; a mask of the shape of `x` is turned into positions, since NumPy branches at each element."""
    if x.size >= POSITIONS_FROM and mask.shape == x.shape and x.flags.c_contiguous and mask.flags.c_contiguous:
        return x.reshape(-1).take(mask.reshape(-1).nonzero()[0])
    return x[mask]


def fill_at_mask(x: Any, mask: Any, value: Any) -> None:
    """Write a number where a mask is true, in place."""
    if x.size >= POSITIONS_FROM and mask.shape == x.shape and x.flags.c_contiguous and mask.flags.c_contiguous:
        x.reshape(-1)[mask.reshape(-1).nonzero()[0]] = value
    else:
        x[mask] = value


def _nonzero(x: Any) -> Any:
    if x.dtype == dtypes.BFLOAT16:
        x = dtypes.widen(x)
    if not x.ndim:
        return np.zeros((int(bool(x)), 0), np.int64)
    return noted(nonzero_places(x).T)


def _repeat_interleave(repeats: Any) -> Any:
    if repeats.dtype.kind != "i" or repeats.dtype.itemsize < 4:
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{_scalar_name(repeats)}'")
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    return np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)


PRIMITIVES: dict[str, Any] = {
    "gather": _gather, "scatter": _scatter, "scatter_reduce": _scatter_reduce,
    "scatter_add": _scatter_add,
    "index_select": _index_select, "index_add": _index_add, "index_copy": _index_copy, "index_fill": _index_fill,
    "index_reduce_kernel": _index_reduce, "index": _index, "index_put": _index_put, "add_at_indices": _add_at_indices,
    "masked_fill": _masked_fill, "masked_select": _masked_select, "masked_scatter": _masked_scatter,
    "masked_scatter_gradient": _masked_scatter_backward, "take": _take, "put": _put, "nonzero": _nonzero,
    "repeat_interleave_indices": _repeat_interleave,
}
