"""Gathers and scatters of few elements in one call each: what the rules of small gradients consist of.

The tables of positions are kept by shapes. Every function returns None where the arrays are not few, not of these
layouts or dtypes, or where an index is out of range: the callers' own code then computes the result, or raises. Equal
positions accumulate in the order of the source, so that the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....codegen.indexing import added_rows, flat_positions
from ....kernels.small_indexing import TABLES, places_along, places_of_slices, positions_of_rows, rounded
from ....shapes import contiguous_strides

ndarray = np.ndarray
empty = np.empty
ADD, FILL, GATHER, REPLACE = flat_positions.ADD, flat_positions.FILL, flat_positions.GATHER, flat_positions.REPLACE
_LONG = np.dtype(np.int64)
#: (what, dtype, shapes, axis) -> (built-in function, what has to live as long); None where there is none
_functions: dict[tuple[Any, ...], Any] = {}
Shape = tuple[int, ...]
#: the most elements of an array that is written to: memory of larger ones is the allocator's, inside the quiet context
_MOST_ELEMENTS = 16384
#: the most elements of rows that are added: the kernels of larger ones have several threads
_MOST_MOVED = 32768
#: (positions without those by the indices, the number of each element's index, (size, step) of each index)
_Tables = tuple[ndarray, ndarray, Sequence[tuple[int, int]]]


def _tables_along(shape: Shape, index: Shape, axis: int) -> _Tables | None:
    """Of an index with a number for each element; it may lack the axis."""
    if len(index) == len(shape) - 1:
        index = (*index[:axis], 1, *index[axis:])
    if len(index) != len(shape) or any(n > m for d, (n, m) in enumerate(zip(index, shape, strict=True)) if d != axis):
        return None
    places, size, step = places_along(shape, index, axis)
    return places, np.arange(places.size), [(size, step)]


def _tables_of_slices(shape: Shape, index: Shape, axis: int) -> _Tables:
    """Of an index with a number for each slice along an axis."""
    places, size, step, beside = places_of_slices(shape, index, axis)
    if not axis and len(index) == 1:
        count, = index
        return places, positions_of_rows(shape[1:], rounded(count))[1][:count], [(size, step)]
    return places, np.broadcast_to(np.arange(prod(index)).reshape(beside), places.shape), [(size, step)]


def _tables_of_rows(shape: Shape, index: Shape, count: int) -> _Tables:
    """Of one index for each of the first dimensions."""
    rest = shape[count:]
    width = prod(rest)
    places = np.broadcast_to(np.arange(width), (prod(index), width))
    picks = np.broadcast_to(np.arange(prod(index)).reshape(-1, 1), places.shape)
    return places.reshape(*index, *rest), picks, list(zip(shape, contiguous_strides(shape)[:count], strict=False))


def _plan(key: tuple[Any, ...], action: str, dtype: np.dtype, tables: _Tables | None, moved: Shape, elements: int,
          number: Any = 0.0, wraps: bool = False, zeros: bool = False) -> Any:
    """Make and keep a function, unless there is none for these arrays.

    Args:
        moved: the shape of the elements that are moved.
    """
    if len(_functions) >= TABLES:
        _functions.clear()
    found = None
    if tables is not None and dtype.char in "fd" and tables[0].shape == moved and (
            0 < tables[0].size <= flat_positions.MOST and 0 < elements <= _MOST_ELEMENTS):
        places, picks = (np.ascontiguousarray(each, np.int64).reshape(-1) for each in tables[:2])
        found = flat_positions.function(action, dtype, places, picks, tables[2], elements, number, wraps, zeros)
    _functions[key] = found
    return found


def put_along(index: ndarray, source: Any, axis: int, shape: Shape, action: str) -> ndarray | None:
    """Zeros of a shape with a source written or added (REPLACE, ADD) at an index of its shape; it may lack the axis."""
    if source.__class__ is not ndarray or index.dtype is not _LONG:
        return None
    dtype = source.dtype
    key = (action, dtype.char, shape, source.shape, index.shape, axis)
    if key in _functions:
        found = _functions[key]
    else:
        tables = _tables_along(shape, index.shape, axis)
        if tables is not None and source.size == index.size:
            tables = tables[0].reshape(source.shape), *tables[1:]
        found = _plan(key, action, dtype, tables, source.shape, prod(shape), zeros=True)
    if found is None or not (source.flags.c_contiguous and index.flags.c_contiguous):
        return None
    result: ndarray | None = found[0](None, empty(shape, dtype), index, source)
    return result


def add_slices(index: ndarray, source: Any, axis: int, shape: Shape) -> ndarray | None:
    """Zeros of a shape with slices added along an axis, as many as indices."""
    if source.__class__ is not ndarray or index.dtype is not _LONG:
        return None
    if not axis and index.ndim == 1:
        return add_rows(None, index, source, shape)
    dtype = source.dtype
    key = ("slices", dtype.char, shape, source.shape, index.shape, axis)
    if key in _functions:
        found = _functions[key]
    else:
        found = _plan(key, ADD, dtype, _tables_of_slices(shape, index.shape, axis), source.shape, prod(shape),
                      zeros=True)
    if found is None or not (source.flags.c_contiguous and index.flags.c_contiguous):
        return None
    result: ndarray | None = found[0](None, empty(shape, dtype), index, source)
    return result


def add_rows(x: ndarray | None, index: ndarray, source: ndarray, shape: Shape) -> ndarray | None:
    """A copy of an array of a shape (None: zeros) with rows added at a vector of indices, one after the other."""
    dtype, count = source.dtype, index.size
    if source.__class__ is not ndarray or index.__class__ is not ndarray or dtype.char not in "fd" or (
            source.shape != (count, *shape[1:]) or not 0 < source.size <= _MOST_MOVED or prod(shape) > _MOST_ELEMENTS
            or not (source.flags.c_contiguous and index.flags.c_contiguous)):
        return None
    add = added_rows.function(dtype.char, count, shape[0], source.size // count, x is None)
    result = empty(shape, dtype)
    found: ndarray | None = add(None, result, index, source) if x is None else add(None, result, x, index, source)
    return found


def add_at_indices(indices: Sequence[Any], source: Any, shape: Shape) -> ndarray | None:
    """Zeros of a shape with a source added: at one index along a dimension, or one for each of the first ones."""
    last = indices[-1]
    count = len(indices)
    if count > len(shape):
        return None
    if count == 1 or indices[0] is None:
        if last is None or any(index is not None for index in indices[:-1]):
            return None
        return add_slices(last, source, count - 1, shape)
    if source.__class__ is not ndarray or any(
            index is None or index.dtype is not _LONG or index.shape != last.shape or not index.flags.c_contiguous
            for index in indices):
        return None
    dtype = source.dtype
    key = ("rows", dtype.char, shape, source.shape, last.shape, count)
    if key in _functions:
        found = _functions[key]
    else:
        found = _plan(key, ADD, dtype, _tables_of_rows(shape, last.shape, count), source.shape, prod(shape), zeros=True)
    if found is None or not source.flags.c_contiguous:
        return None
    result: ndarray | None = found[0](None, empty(shape, dtype), *indices, source)
    return result


def _moving(action: str, x: Any, index: ndarray, axis: int, number: Any, tables_of: Callable[..., Any],
            wraps: bool = False) -> ndarray | None:
    if x.__class__ is not ndarray or index.dtype is not _LONG or not x.ndim:
        return None
    dtype, shape = x.dtype, x.shape
    key = (action, tables_of, dtype.char, shape, index.shape, axis, number)
    if key in _functions:
        found = _functions[key]
    else:
        tables = tables_of(shape, index.shape, axis)
        found = _plan(key, action, dtype, tables, tables[0].shape if tables is not None else (), x.size, number, wraps)
        if found is not None:
            found = _functions[key] = (*found, tables[0].shape if action == GATHER else shape)
    if found is None or not (x.flags.c_contiguous and index.flags.c_contiguous):
        return None
    result: ndarray | None = found[0](None, empty(found[2], dtype), x, index)
    return result


def take_along(x: Any, index: ndarray, axis: int) -> ndarray | None:
    """The elements at an index of the array's rank along an axis."""
    return _moving(GATHER, x, index, axis, 0, _tables_along) if index.ndim == x.ndim else None


def take_slices(x: Any, index: ndarray, axis: int) -> ndarray | None:
    """The slices at a vector of indices along an axis."""
    return _moving(GATHER, x, index, axis, 0, _tables_of_slices)


def clear_along(x: Any, index: ndarray, axis: int) -> ndarray | None:
    """A copy with 0 at an index of the array's rank along an axis."""
    return _moving(FILL, x, index, axis, 0, _tables_along) if index.ndim == x.ndim else None


def clear_slices(x: Any, index: ndarray, axis: int) -> ndarray | None:
    """A copy with 0 in the slices at a vector of indices along an axis; negative ones count from the end."""
    return _moving(FILL, x, index, axis, 0, _tables_of_slices, True)


__all__ = ["ADD", "REPLACE", "add_at_indices", "add_slices", "clear_along", "clear_slices", "put_along", "take_along",
           "take_slices"]
