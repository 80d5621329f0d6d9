"""Launches of sorts, order statistics and running extrema of small arrays: (values, indices) by one kernel.

A launch returns None where the kernel says that PyTorch's choice among equal elements is another, or where there are
NaNs among elements that are chosen by rank: the operator's own kernel then decides.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ... import codegen
from ...backends.compiled import modes_launch, scan_launch, sort_launch, tied_rows_launch, top_k_launch
from ...dtypes import NARROW
from ...runtime.filling import Filling, NewArray, with_filling
from ...shapes import wrap_dim

ndarray = np.ndarray
empty = np.empty
LONG, BOOL = np.dtype(np.int64), np.dtype(np.bool_)


def _any(flags: ndarray) -> bool:
    """Whether a row-major array of masks has a true one."""
    return flags.tobytes().find(1) >= 0


Launch = Callable[[ndarray], Any] | None
#: rows up to this length are sorted by insertion in PyTorch, which keeps the order of equal elements
_INSERTION = 16
#: the most elements of rows in which ranks are counted, and of an array of one row
_LONGEST, _LONGEST_OF_ALL = 128, 512
#: the most elements that each of others is compared with
_TESTS = 64
#: the most counts of `bincount`, and the most elements that are counted for a rank
_COUNTS, _FEW = 4096, 4096


def _is_row_major(a: ndarray) -> bool:
    return a.ndim > 0 and a.size > 0 and a.dtype.kind == "f" and bool(a.flags.c_contiguous)


def _narrow_rows(a: ndarray, dim: int) -> bool:
    """Whether an array of 16-bit elements, which repeat in most rows, has rows along its last dimension."""
    return a.dtype in NARROW and codegen.available() and (
        a.ndim > 0 and a.size > 0 and bool(a.flags.c_contiguous) and wrap_dim(dim, a.ndim) == a.ndim - 1)


def _sort(a: ndarray, dim: int = -1, descending: bool = False, stable: bool = False) -> Launch:
    if not stable and descending.__class__ is bool and a.ndim and a.shape[dim] > _INSERTION and _narrow_rows(a, dim):
        return tied_rows_launch(a, a.shape[-1], descending, True)
    if not _is_row_major(a) or descending.__class__ is not bool:
        return None
    axis, n = wrap_dim(dim, a.ndim), a.shape[dim]
    last = axis == a.ndim - 1
    launch = sort_launch(a if last else a.swapaxes(axis, -1).copy(), descending)
    if launch is None:
        return None
    decides = not stable and n > _INSERTION

    def sort(x: ndarray) -> Any:
        values, indices, repeated = launch(x if last else x.swapaxes(axis, -1).copy())
        if decides and _any(repeated):
            return None
        return (values, indices) if last else (values.swapaxes(axis, -1).copy(), indices.swapaxes(axis, -1).copy())

    return sort


def _sort_stable(a: ndarray, stable: Any, dim: int = -1, descending: bool = False) -> Launch:
    return _sort(a, dim, descending, True) if stable is True else None


def _ranked(a: ndarray, dim: int, keepdim: bool, rank: int, any_of_equals: bool) -> Launch:
    """The element of a rank along a dimension.

    Args:
        any_of_equals: whether the first of equal elements is not chosen.
    """
    if not _is_row_major(a) or not 0 <= rank < a.shape[dim]:
        return None
    axis = wrap_dim(dim, a.ndim)
    if axis != a.ndim - 1:
        return _along(a, axis, keepdim, lambda rows: _ranked(rows, -1, False, rank, any_of_equals))
    counting = _by_counting(a, keepdim, rank, any_of_equals)
    if counting is not None:
        return counting
    launch = sort_launch(a, False)
    if launch is None:
        return None
    at: Any = (..., slice(rank, rank + 1)) if keepdim else (..., rank)

    def pick(x: ndarray) -> Any:
        values, indices, repeated = launch(x)
        if any_of_equals and _any(repeated):
            return None
        largest = values[..., -1]
        if _any(largest != largest):
            return None
        return values[at].copy(), indices[at].copy()

    return pick


def _along(a: ndarray, axis: int, keepdim: bool, make: Callable[[ndarray], Launch]) -> Launch:
    """The launch of rows, of another dimension.

    Args:
        make: gives that of rows, without the dimension.
    """
    find = make(np.moveaxis(a, axis, -1).copy())
    if find is None:
        return None

    def pick(x: ndarray) -> Any:
        found = find(np.moveaxis(x, axis, -1).copy())
        return found if found is None or not keepdim else tuple([np.expand_dims(each, axis) for each in found])

    return pick


def _by_counting(a: ndarray, keepdim: bool, rank: int, unique: bool, most: int = _LONGEST) -> Launch:
    """`_ranked` of few elements in rows of at most `most`; `unique`: None where there is an equal element."""
    if not codegen.available() or a.dtype.char not in "fd" or a.size > _FEW:
        return None
    from ...codegen.sorting import ranks

    length = a.shape[-1]
    if length > most:
        return None
    find = ranks.function(a.dtype, a.size // length, length, rank, unique)
    shape, dtype = (*a.shape[:-1], 1) if keepdim else a.shape[:-1], a.dtype

    def pick(x: ndarray) -> Any:
        values, indices = empty(shape, dtype), empty(shape, LONG)
        return None if find(None, values, indices, x) is None else (values, indices)

    return pick


def median_of_all(a: ndarray) -> Launch:
    """The lower median of all elements."""
    if not a.ndim or not a.flags.c_contiguous:
        return None
    find = _by_counting(a.reshape(1, -1), False, (a.size - 1) // 2, False, _LONGEST_OF_ALL) if a.size else None
    if find is None:
        return None

    def pick(x: ndarray) -> Any:
        found = find(x)
        return None if found is None else found[0].reshape(())

    return pick


def isin(elements: Any, tests: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """The function of elements and tests of one dtype, of which each is compared with each."""
    if elements.__class__ is not ndarray or tests.__class__ is not ndarray or elements.dtype is not tests.dtype or (
            elements.dtype.char not in "fdl" or not elements.size or not 0 < tests.size <= _TESTS) or not (
            codegen.available() and elements.flags.c_contiguous and tests.flags.c_contiguous):
        return None
    from ...codegen.indexing import searching

    search, shape = searching.membership(elements.dtype, elements.size, tests.size, bool(invert)), elements.shape
    return with_filling(lambda x, tests: search(empty(shape, BOOL), x, tests),
                        Filling(search, (NewArray(shape, BOOL), 0, 1)))


def _kthvalue(a: ndarray, k: int, dim: int = -1, keepdim: bool = False) -> Launch:
    return _ranked(a, dim, bool(keepdim), k - 1, True)


def _median(a: ndarray, dim: int, keepdim: bool = False) -> Launch:
    return _ranked(a, dim, bool(keepdim), (a.shape[dim] - 1) // 2, False) if a.ndim else None


def _mode(a: ndarray, dim: int = -1, keepdim: bool = False) -> Launch:
    if not a.ndim:
        return None
    axis = wrap_dim(dim, a.ndim)
    if axis != a.ndim - 1:
        return _along(a, axis, keepdim, modes_launch)
    find = modes_launch(a)
    if find is None or not keepdim:
        return find

    def with_dim(x: ndarray) -> Any:
        found = find(x)
        return None if found is None else tuple([each.reshape(*each.shape, 1) for each in found])

    return with_dim


def _topk(a: ndarray, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Launch:
    if _narrow_rows(a, dim) and 1 <= k <= a.shape[-1]:
        return tied_rows_launch(a, k, bool(largest), False)
    if not _is_row_major(a) or wrap_dim(dim, a.ndim) != a.ndim - 1:
        return None
    launch = top_k_launch(a, k, bool(largest))
    if launch is None:
        return None

    def top(x: ndarray) -> Any:
        values, indices, tied = launch(x)
        return None if _any(tied) else (values, indices)

    return top


def _running(name: str) -> Callable[..., Launch]:
    def make(a: ndarray, dim: int) -> Launch:
        return scan_launch(name, a, wrap_dim(dim, a.ndim)) if _is_row_major(a) else None

    return make


def _extremum(method: str) -> Callable[..., Launch]:
    def make(a: ndarray, dim: int, keepdim: bool = False) -> Launch:
        if not _is_row_major(a) or keepdim:
            return None
        axis = wrap_dim(dim, a.ndim)
        shape = (*a.shape[:axis], *a.shape[axis + 1:])
        step = prod(a.shape[axis + 1:])
        starts = np.arange(a.size).reshape(a.shape).take(0, axis)

        def find(x: ndarray) -> Any:
            indices = getattr(x, method)(axis)
            return x.take(indices * step + starts), indices

        return find if shape else None

    return make


def searchsorted(boundaries: ndarray, values: Any, sorter: Any = None, *, right: bool, out_int32: bool) -> Any:
    """The function of boundaries and values; None for unsorted ones, and for those with NaN."""
    if values.__class__ is not ndarray or sorter is not None or out_int32 or boundaries.ndim != 1 or (
            boundaries.dtype is not values.dtype or values.dtype.kind not in "fi" or not boundaries.size):
        return None
    if codegen.available() and values.dtype.char in "fdl" and (
            boundaries.flags.c_contiguous and values.flags.c_contiguous):
        from ...codegen.indexing import searching

        search, shape = searching.search(values.dtype, boundaries.size, values.size, right), values.shape
        return with_filling(lambda edges, x: search(None, empty(shape, LONG), edges, x),
                            Filling(search, ([None], NewArray(shape, LONG), 0, 1)))
    every, at_most = np.logical_and.reduce, np.less_equal
    side: Any = "right" if right else "left"

    def find(boundaries: ndarray, values: ndarray) -> Any:
        last = boundaries[-1]
        if not every(at_most(boundaries[:-1], boundaries[1:]), None) or last != last:
            return None
        return np.asarray(boundaries.searchsorted(values, side))

    return find


def bincount(a: ndarray, weights: Any = None, minlength: Any = 0) -> Any:
    """The function of numbers; None for those whose counts are of another number."""
    if weights is not None or a.dtype is not LONG or a.ndim != 1 or not a.size or minlength.__class__ is not int or (
            not a.flags.c_contiguous or not codegen.available() or a.min() < 0):
        return None
    length = max(int(a.max()) + 1, minlength)
    if length > _COUNTS:
        return None
    from ...codegen.indexing import searching

    count = searching.count(a.size, length, minlength)
    return with_filling(lambda x: count(None, empty(length, LONG), x),
                        Filling(count, ([None], NewArray((length,), LONG), 0)))


#: operator -> maker (array, *parameters) -> the function of an array that gives (values, indices)
SELECTIONS: dict[str, Callable[..., Launch]] = {
    "mode": _mode, "sort": _sort, "sort_stable": _sort_stable, "kthvalue": _kthvalue, "median": _median,
    "max": _extremum("argmax"),
    "min": _extremum("argmin"), "topk": _topk, "cummax": _running("max"), "cummin": _running("min"),
}

__all__ = ["SELECTIONS", "bincount", "isin", "median_of_all", "searchsorted"]
