"""Scatter and index-add: accumulation at indices by a flat `ufunc.at`, or by row additions for wide rows.

NumPy's `ufunc.at` takes about 1 ns per element when target, index and values are flat, and ten times as
long otherwise, so positions are flattened first. Every function modifies `target`, a writable array, and
returns it; equal positions accumulate in the order of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .. import dtypes

WIDE_ROW = 64
FEW_ROUNDS = 16
#: so many elements are added at positions in the flat target, whatever the axis
FEW_ELEMENTS = 2048

#: dtypes of records, which NumPy cannot add
_RECORDS = frozenset((dtypes.BFLOAT16, dtypes.COMPLEX32))

REDUCTIONS = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}


def _out_of_range(index: np.ndarray, least: int, size: int) -> bool:
    """Whether an index is less than `least`, or `size` or more."""
    return bool(index.size) and bool(
        np.minimum.reduce(index, None) < least or np.maximum.reduce(index, None) >= size)


def scatter_add(target: np.ndarray, axis: int, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    """``target[..., index[p], ...] += source[p]`` at every place p of `index`.

    Args:
        target: any shape.
        axis: the axis that `index` replaces.
        index: integers, the target's number of axes; elsewhere than along `axis` no longer than it.
        source: at least index's shape.

    Raises:
        RuntimeError: an index is negative or too large.
    """
    return scatter_reduce(target, axis, index, source, "sum")


def scatter_reduce(target: np.ndarray, axis: int, index: np.ndarray, source: np.ndarray, reduction: str,
                   include_self: bool = True, rounded: bool = False) -> np.ndarray:
    """Reduce into each target element the source elements whose index names it.

    Args:
        reduction: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether the target's value is part of the reduction where elements are scattered.
            Elsewhere it is unchanged.
        rounded: whether a 16-bit target rounds after each source element, not once; PyTorch's kernels of slices do.

    Raises:
        RuntimeError: an index is negative or too large.
    """
    if reduction not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduction}")
    target_, index, source = np.atleast_1d(target), np.atleast_1d(index), np.atleast_1d(source)
    source = source[tuple(slice(length) for length in index.shape)]
    if not index.size:
        return target
    if _out_of_range(index, 0, target_.shape[axis]):
        wrong = (index < 0) | (index >= target_.shape[axis])
        raise RuntimeError(f"index {index[wrong][0]} is out of bounds for dimension {axis % target_.ndim} with "
                           f"size {target_.shape[axis]}")
    positions = _flat_positions(target_.shape, axis % target_.ndim, index)
    if target.dtype in dtypes.NARROW:  # accumulate in single precision
        wide = dtypes.widen(target_).reshape(-1)
        _reduce(wide, positions, dtypes.widen(source).reshape(-1), reduction, include_self, target.dtype, rounded)
        target_[...] = dtypes.cast(wide.reshape(target_.shape), target.dtype)
    elif target.flags.c_contiguous:
        _reduce(target.reshape(-1), positions, source.reshape(-1), reduction, include_self)
    else:
        flat = target_.reshape(-1)
        _reduce(flat, positions, source.reshape(-1), reduction, include_self)
        target_[...] = flat.reshape(target_.shape)
    return target


def index_add(target: np.ndarray, axis: int, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    """``target[..., index[i], ...] += source[..., i, ...]``, `index` flat.

    Raises:
        IndexError, RuntimeError: an index is negative or too large.
    """
    if not source.size:
        return target
    index = index.reshape(-1)
    if target.ndim <= 1:
        size = target.size
        if _out_of_range(index, 0, size):
            raise IndexError("index out of range in self")
        if target.dtype in _RECORDS:
            wide = dtypes.widen(target).reshape(-1)
            np.add.at(wide, index, dtypes.widen(source).reshape(-1))
            target[...] = dtypes.cast(wide.reshape(target.shape), target.dtype)
        elif target.ndim:
            np.add.at(target, index, source.reshape(-1))
        else:
            np.add.at(target.reshape(1), index, source.reshape(-1))
        return target
    axis %= target.ndim
    size = target.shape[axis]
    if _out_of_range(index, 0, size):
        wrong = (index < 0) | (index >= size)
        raise RuntimeError(f"index {index[wrong][0]} is out of bounds for dimension 0 with size {size}")
    if source.size <= FEW_ELEMENTS and target.flags.c_contiguous and target.dtype.kind in "fiu" and (
            target.dtype not in dtypes.NARROW):
        rest = prod(target.shape[axis + 1:])
        places = index.astype(np.int64) + np.arange(0, prod(target.shape[:axis + 1]), size)[:, None]
        if rest != 1:
            places = places[..., None] * rest + np.arange(rest)
        np.add.at(target.reshape(-1), places.reshape(-1), source.reshape(-1))
        return target
    if axis == 0:
        rows = np.ascontiguousarray(source).reshape(len(index), -1)
        if target.flags.c_contiguous:
            index_add_rows(target.reshape(size, -1), index, rows)
        else:
            copy = np.ascontiguousarray(target)
            index_add_rows(copy.reshape(size, -1), index, rows)
            target[...] = copy
        return target
    moved = np.ascontiguousarray(np.moveaxis(target, axis, 0))
    index_add_rows(moved.reshape(size, -1), index,
                   np.ascontiguousarray(np.moveaxis(source, axis, 0)).reshape(len(index), -1))
    target[...] = np.moveaxis(moved, 0, axis)
    return target


def index_add_rows(target: np.ndarray, index: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``target[index[i]] += rows[i]`` for a C-contiguous (V, D) target: an embedding's gradient.

    Args:
        index: (N,) integers, each in 0 .. V - 1.
        rows: (N, D).
    """
    count, width = target.shape
    if not rows.size:
        return target
    if target.dtype in dtypes.NARROW or target.dtype in _RECORDS:
        wide = np.ascontiguousarray(dtypes.widen(target))
        index_add_rows(wide, index, dtypes.widen(rows))
        target[...] = dtypes.cast(wide, target.dtype)
        return target
    if width >= WIDE_ROW:
        rounds = int(np.bincount(index, minlength=count).max())
        if rounds == 1:
            target[index] += rows
            return target
        if rounds <= FEW_ROUNDS:  # the r-th occurrences of all rows are distinct rows
            order = np.argsort(index, kind="stable")
            ordered = index[order]
            starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
            occurrence = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
            for r in range(rounds):
                chosen = order[occurrence == r]
                target[index[chosen]] += rows[chosen]
            return target
    positions = (index.astype(np.int64)[:, None] * width + np.arange(width)).reshape(-1)
    np.add.at(target.reshape(-1), positions, rows.reshape(-1))
    return target


def index_put_accumulate(target: np.ndarray, indices: Sequence[Any], values: np.ndarray) -> np.ndarray:
    """``target[indices] += values``, where repeated positions accumulate.

    Args:
        indices: what NumPy's advanced indexing takes; `values` broadcasts to the indexed shape.

    Raises:
        IndexError: an index is out of bounds.
    """
    indices = tuple(indices)
    contiguous = target if target.flags.c_contiguous else np.ascontiguousarray(target)
    places = _leading_rows(target.shape, indices)
    if places is not None:
        rest = target.shape[len(indices):]
        width = prod(rest)
        shape = (*places.shape, *rest)
        values = np.broadcast_to(values, shape)
        if width == 1 and target.dtype not in _RECORDS:
            np.add.at(contiguous.reshape(-1), places.reshape(-1), values.reshape(-1))
        elif width:
            index_add_rows(contiguous.reshape(-1, width), places.reshape(-1), values.reshape(-1, width))
    else:
        every: np.ndarray = np.arange(target.size).reshape(target.shape)
        positions = every[indices]
        values = np.broadcast_to(values, np.shape(positions)).reshape(-1)
        flat, positions = contiguous.reshape(-1), np.reshape(positions, -1)
        if target.dtype in _RECORDS:
            wide = dtypes.widen(flat)
            np.add.at(wide, positions, dtypes.widen(values))
            flat[...] = dtypes.cast(wide, target.dtype)
        else:
            np.add.at(flat, positions, values)
    if contiguous is not target:
        target[...] = contiguous
    return target


def _flat_positions(shape: tuple[int, ...], axis: int, index: np.ndarray) -> np.ndarray:
    """Flat C-order positions in an array of that shape, index given along one axis."""
    positions: np.ndarray | int = 0
    for a in range(len(shape)):
        step = prod(shape[a + 1:])
        place = index if a == axis else np.arange(index.shape[a]).reshape(-1, *(1,) * (len(shape) - 1 - a))
        positions = positions + place * step
    return np.asarray(positions, np.int64).reshape(-1)


def accumulate_rounded(flat: np.ndarray, positions: np.ndarray, values: np.ndarray, reduction: str,
                       dtype: np.dtype) -> None:
    """`ufunc.at` on a float32 array of numbers of a 16-bit dtype, where each partial result is rounded to it."""
    operator = REDUCTIONS[reduction]
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    lengths = np.diff(np.append(starts, len(order)))
    for r in range(int(lengths.max(initial=0))):  # the r-th occurrences name different elements
        chosen = order[starts[lengths > r] + r]
        places = positions[chosen]
        flat[places] = dtypes.widen(dtypes.cast(operator(flat[places], values[chosen]), dtype))


def _reduce(flat: np.ndarray, positions: np.ndarray, values: np.ndarray, reduction: str, include_self: bool,
            narrow: np.dtype | None = None, rounded: bool = False) -> None:
    """Reduce into `flat`; `narrow`: the 16-bit dtype that its numbers will be rounded to."""
    if not include_self:
        flat[positions] = _identity(reduction, flat.dtype)
    if narrow is not None and rounded:
        accumulate_rounded(flat, positions, values, reduction, narrow)
    else:
        REDUCTIONS[reduction].at(flat, positions, values)
    if reduction == "mean":
        if narrow is not None:  # the sums are numbers of the dtype
            flat[...] = dtypes.widen(dtypes.cast(flat, narrow))
        counts = np.full(flat.shape, 1 if include_self else 0, np.int64)
        np.add.at(counts, positions, 1)
        np.maximum(counts, 1, out=counts)
        if flat.dtype.kind in "iu":
            flat[...] = flat.astype(np.int64) // counts
        else:
            np.divide(flat, counts.astype(flat.real.dtype), out=flat)


def _identity(reduction: str, dtype: np.dtype) -> object:
    if reduction in ("sum", "mean"):
        return 0
    if reduction == "prod":
        return 1
    if dtype.kind == "b":
        return reduction == "amin"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if reduction == "amax" else limits.max
    return -np.inf if reduction == "amax" else np.inf


def _leading_rows(shape: tuple[int, ...], indices: tuple[Any, ...]) -> np.ndarray | None:
    """Row numbers over the first axes, if integer arrays index just those."""
    if not indices or len(indices) > len(shape):
        return None
    if not all(isinstance(i, np.ndarray) and i.dtype.kind in "iu" for i in indices):
        return None
    rows: np.ndarray | int = 0
    for axis, (index, size) in enumerate(zip(indices, shape, strict=False)):
        if _out_of_range(index, -size, size):
            wrong = (index < -size) | (index >= size)
            if not size:
                raise IndexError("index is out of bounds for dimension with size 0")
            raise IndexError(f"index {index[wrong].flat[0]} is out of bounds for dimension {axis} with size {size}")
        if index.size and np.minimum.reduce(index, None) < 0:
            index = np.where(index < 0, index + size, index)
        rows = index if rows.__class__ is int else rows * size + index
    return np.asarray(rows, np.int64)
