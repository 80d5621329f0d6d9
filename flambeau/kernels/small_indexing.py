"""Gathers and scatters of few elements: the positions that shapes determine are kept in tables.

Every function returns None where the arrays are not few or not of these layouts, and where an index is negative or out
of range: the general kernels then wrap it or raise. Equal positions accumulate in the order of the source, as in
`scatter`, so that the bits are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..shapes import contiguous_strides

#: the most elements that are gathered or scattered
MOST = 2048
#: the most tables
TABLES = 1024

_add_at = np.add.at
_LONG, _UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)
Shape = tuple[int, ...]


def exceeds(index: np.ndarray, size: int) -> bool:
    """Whether an int64 index, not empty, is negative, which is large as unsigned, or at least `size`."""
    unsigned = index.view(_UNSIGNED)
    return bool(unsigned.item(unsigned.argmax()) >= size)  # in half the time of a reduction


@functools.lru_cache(TABLES)
def places_along(shape: Shape, index: Shape, axis: int) -> tuple[np.ndarray, int, int]:
    """(positions in an array of a shape without those along an axis, the size of the axis, its step)."""
    steps = contiguous_strides(shape)
    places = np.zeros(index, np.int64)
    for d, (n, step) in enumerate(zip(index, steps, strict=True)):
        if d != axis:
            places += (np.arange(n) * step).reshape(-1, *(1,) * (len(shape) - 1 - d))
    return places, shape[axis], steps[axis]


def positions_along(shape: Shape, index: np.ndarray, axis: int) -> Any:
    """The positions in an array of a shape that an index of its rank names along an axis."""
    if index.dtype is not _LONG or not 0 < index.size <= MOST or index.ndim != len(shape):
        return None
    places, size, step = places_along(shape, index.shape, axis)
    if exceeds(index, size):
        return None
    return index + places if step == 1 else index * step + places


def rounded(count: int) -> int:
    """The power of two from a count on: how many rows a table has that serves the count, too."""
    return 1 << (max(count, 1) - 1).bit_length()


@functools.lru_cache(TABLES)
def positions_of_rows(row: Shape, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(the position of each element in its row, the number of its row) of so many rows of a shape."""
    positions = np.zeros((count, *row), np.int64)
    positions += np.arange(prod(row)).reshape(row)
    numbers = np.zeros((count, *row), np.int64)
    numbers += np.arange(count).reshape(-1, *(1,) * len(row))
    return positions, numbers


@functools.lru_cache(TABLES)
def places_of_slices(shape: Shape, index: Shape, axis: int) -> tuple[np.ndarray, int, int, Shape]:
    """(positions of the slices' elements, the size of the axis, its step, the index's shape beside the slices).

    The positions are those of (*shape[:axis], *index, *shape[axis + 1:]) without those along the axis.
    """
    steps = contiguous_strides(shape)
    count = len(index)
    if not axis and count == 1 and shape:
        positions, _ = positions_of_rows(shape[1:], rounded(index[0]))
        return positions[:index[0]], shape[0], steps[0], (index[0], *(1,) * (len(shape) - 1))
    places = np.zeros((*shape[:axis], *index, *shape[axis + 1:]), np.int64)
    for d, (n, step) in enumerate(zip(shape, steps, strict=True)):
        if d < axis:
            places += (np.arange(n) * step).reshape(-1, *(1,) * (places.ndim - 1 - d))
        elif d > axis:
            places += (np.arange(n) * step).reshape(-1, *(1,) * (len(shape) - 1 - d))
    return places, shape[axis], steps[axis], (*(1,) * axis, *index, *(1,) * (places.ndim - axis - count))


def positions_of_slices(shape: Shape, index: np.ndarray, axis: int) -> Any:
    """The positions of the slices of an array of a shape at an index along an axis."""
    if index.dtype is not _LONG or not 0 < index.size <= MOST:
        return None
    places, size, step, beside = places_of_slices(shape, index.shape, axis)
    if not 0 < places.size <= MOST or exceeds(index, size):
        return None
    beside_slices = index.reshape(beside)
    return beside_slices + places if step == 1 else beside_slices * step + places


def gather(x: np.ndarray, index: np.ndarray, axis: int) -> Any:
    """The elements of `x` that an index of its rank names along an axis."""
    if not x.flags.c_contiguous:
        return None
    positions = positions_along(x.shape, index, axis)
    return None if positions is None else x.take(positions)


def scatter_add(x: np.ndarray, index: np.ndarray, source: np.ndarray, axis: int) -> Any:
    """A copy of `x` with a source of the index's shape added along an axis."""
    if source.shape != index.shape or x.dtype is not source.dtype or x.dtype.kind != "f" or x.itemsize < 4:
        return None
    positions = positions_along(x.shape, index, axis)
    return None if positions is None else _added(x, positions, source)


def index_add(x: np.ndarray, index: np.ndarray, source: np.ndarray, axis: int) -> Any:
    """A copy of `x` with slices added along an axis, at a vector of indices."""
    if index.ndim != 1 or x.dtype is not source.dtype or x.dtype.kind != "f" or x.itemsize < 4 or (
            source.size > MOST or source.shape != (*x.shape[:axis], index.size, *x.shape[axis + 1:])):
        return None
    positions = positions_of_slices(x.shape, index, axis)
    return None if positions is None else _added(x, positions, source)


def add_at_indices(x: np.ndarray, indices: Sequence[Any], shape: Shape) -> Any:
    """Zeros of a shape with `x` added at the indices: one along a dimension, or one for each of the first ones."""
    if x.dtype.kind != "f" or x.itemsize < 4 or x.size > MOST:
        return None
    last = indices[-1]
    if last is None or last.dtype is not _LONG or not last.size:
        return None
    axis = len(indices) - 1
    if not axis or indices[0] is None:
        if any(index is not None for index in indices[:axis]):
            return None
        positions = positions_of_slices(shape, last, axis)
    else:
        positions = _positions_of_rows(shape, indices)
    if positions is None or positions.shape != x.shape:
        return None
    result = np.zeros(prod(shape), x.dtype)
    _add_at(result, positions.reshape(-1), x.reshape(-1))
    return result.reshape(shape)


def _positions_of_rows(shape: Shape, indices: Sequence[Any]) -> Any:
    """The positions of elements by an index of one shape for each of the first dimensions."""
    rows: Any = None
    first = indices[0]
    if not first.size:
        return None
    for index, size in zip(indices, shape, strict=False):
        if index is None or index.dtype is not _LONG or index.shape != first.shape or (
                exceeds(index, size)):
            return None
        rows = index if rows is None else rows * size + index
    if len(indices) == len(shape):
        return rows
    rest = shape[len(indices):]
    width = prod(rest)
    return (rows[..., None] * width + np.arange(width)).reshape(*rows.shape, *rest)


def add_rows(source: np.ndarray, index: np.ndarray, count: int) -> Any:
    """Zeros (count, width) with rows (*index.shape, width) added at an index: an embedding's gradient."""
    if source.dtype.kind != "f" or source.itemsize < 4 or source.size > MOST:
        return None
    shape = (count, source.shape[-1])
    positions = positions_of_slices(shape, index, 0)
    if positions is None or positions.shape != source.shape:
        return None
    result = np.zeros(shape, source.dtype)
    _add_at(result.reshape(-1), positions.reshape(-1), source.reshape(-1))
    return result


def _added(x: np.ndarray, positions: np.ndarray, source: np.ndarray) -> np.ndarray:
    result = x.copy()  # row-major
    _add_at(result.reshape(-1), positions.reshape(-1), source.reshape(-1))
    return result


__all__ = ["add_at_indices", "add_rows", "exceeds", "gather", "index_add", "places_along", "places_of_slices",
           "positions_along", "positions_of_slices", "scatter_add"]
