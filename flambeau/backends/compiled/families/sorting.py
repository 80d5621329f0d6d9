"""Top k and sorting kernels over rows of large arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .... import dtypes
from ....codegen.sorting import introsort, radix_sort, rank_sort, tied_rows, top_k
from ....kernels import ties
from ....runtime.launch import Spec
from ..launching import Plan, PlanCache, launch_of_outputs
from .indexing import take

ndarray = np.ndarray
_plans = PlanCache()
_INT64, _UINT8 = np.dtype(np.int64), np.dtype(np.uint8)


def select_top_k(rows: ndarray, count: int, largest: bool) -> tuple[ndarray, ndarray, ndarray] | None:
    """The `count` largest or smallest elements of every row, in order; None: NumPy has to find them.

    Args:
        rows: (..., n).

    Returns:
        The elements (..., count), their indices, and which rows have ties that PyTorch may resolve otherwise.
    """
    n = rows.shape[-1]
    if rows.dtype.char not in "fd" or not rows.dtype.isnative or not 1 <= count <= min(n, top_k.MAX_K):
        return None
    dense = np.ascontiguousarray(rows).reshape(-1, n)
    values, indices = np.empty((len(dense), count), rows.dtype), np.empty((len(dense), count), np.int64)
    tied = np.empty(len(dense), np.uint8)
    key = (rows.dtype, dense.shape, count, largest)
    plan = _plans.plans.get(key)
    if plan is None:
        specs = [Spec.of(x) for x in (values, indices, tied, dense)]
        plan = _plans.insert(key, Plan((), top_k.top_k(*specs, largest=largest)))
    plan.run((values, indices, tied, dense))
    shape = *rows.shape[:-1], count
    return values.reshape(shape), indices.reshape(shape), tied.view(np.bool_).reshape(shape[:-1])


def order_tied_rows(rows: ndarray, count: int, descending: bool, sort: bool) -> tuple[ndarray, ndarray] | None:
    """The first elements of sorted rows, in which many may be equal, and PyTorch's indices; None: there is no kernel.

    Args:
        rows: (..., n), not empty.
        count: how many of each row, n if `sort`.
        descending: whether the largest come first.
        sort: whether they have the order of the unstable sort, or that of `topk`.
    """
    rows = np.ascontiguousarray(rows)
    order = tied_rows_launch(rows, count, descending, sort)
    return None if order is None else order(rows)


def tied_rows_launch(rows: ndarray, count: int, descending: bool, sort: bool
                     ) -> Callable[[ndarray], tuple[ndarray, ndarray]] | None:
    """`order_tied_rows` of row-major arrays of this layout."""
    dtype, n = rows.dtype, rows.shape[-1]
    char = "g" if dtype == dtypes.BFLOAT16 else dtype.char
    if char not in tied_rows.KINDS or not dtype.isnative:
        return None
    find = tied_rows.function(char, rows.size // n, n, count, descending, sort)
    shape, words = (*rows.shape[:-1], count), tied_rows.scratch_words(n)

    def order(x: ndarray) -> tuple[ndarray, ndarray]:
        values, indices = np.empty(shape, dtype), np.empty(shape, _INT64)
        find(None, values, indices, np.empty(words, _INT64), x)
        return values, indices

    return order


def sort_rows(rows: ndarray, descending: bool) -> tuple[ndarray, ndarray, ndarray] | None:
    """Stable sort of every row; None: NumPy has to sort.

    Args:
        rows: (..., n).
        descending: descending order.

    Returns:
        The elements, dense; their indices; and which rows have equal elements.
    """
    n = rows.shape[-1]
    if rows.dtype.char != "f" or not rows.dtype.isnative or not 1 <= n < 1 << 31:
        return None
    dense = np.ascontiguousarray(rows).reshape(-1, n)
    indices, repeated = np.empty(dense.shape, np.int64), np.empty(len(dense), np.uint8)
    key = (dense.shape, descending)
    plan = _plans.plans.get(key)
    specs = [Spec.of(x) for x in (indices, repeated, dense)] if plan is None else []
    values: ndarray | None
    if n <= rank_sort.MAX_ROW:
        values = np.empty(dense.shape, dense.dtype)
        if plan is None:
            plan = _plans.insert(key, Plan((), rank_sort.order(Spec.of(values), *specs, descending=descending)))
        plan.run((values, indices, repeated, dense))
    else:
        if plan is None:
            plan = _plans.insert(key, Plan((), radix_sort.order(*specs, descending=descending)))
        plan.run((indices, repeated, dense))
        values = take(dense, indices, 1, dense.shape)
    if values is None:
        return None
    return values.reshape(rows.shape), indices.reshape(rows.shape), repeated.view(np.bool_).reshape(rows.shape[:-1])


def modes_launch(rows: ndarray) -> Callable[[ndarray], tuple[ndarray, ndarray] | None] | None:
    """The function of row-major arrays of this layout, (..., n), that gives the most frequent element of each row, the
    smallest of several, and its index in PyTorch's order of equal elements; None where there is NaN."""
    if rows.dtype.char not in "fdl" or not rows.size or not rows.ndim or not rows.flags.c_contiguous:
        return None
    from ....codegen.sorting import modes

    length, dtype = rows.shape[-1], rows.dtype
    find = modes.function(dtype, rows.size // length, length)
    shape, words = rows.shape[:-1], modes.stack_words(length)

    def pick(x: ndarray) -> tuple[ndarray, ndarray] | None:
        values, indices = np.empty(shape, dtype), np.empty(shape, _INT64)
        scratch = (np.empty(length, _INT64), np.empty(length, _INT64), np.empty(words, _INT64))
        return None if find(None, values, indices, *scratch, x) is None else (values, indices)

    return pick


def modes_of_rows(rows: ndarray) -> tuple[ndarray, ndarray] | None:
    """`modes_launch`, at once; None where it has none."""
    find = modes_launch(np.ascontiguousarray(rows))
    return None if find is None else find(np.ascontiguousarray(rows))


def top_k_launch(rows: ndarray, count: int, largest: bool) -> Callable[[ndarray], tuple[ndarray, ...]] | None:
    """`select_top_k` of row-major arrays of this layout: elements, indices, which rows have ties (uint8)."""
    n, dtype = rows.shape[-1], rows.dtype
    if dtype.char not in "fd" or not 1 <= count <= min(n, top_k.MAX_K):
        return None
    shape = (*rows.shape[:-1], count)
    outs = ((shape, dtype), (shape, _INT64), (rows.shape[:-1], _UINT8))
    dense = rows.reshape(-1, n)
    chosen = len(dense), count
    return launch_of_outputs(outs, top_k.top_k(
        Spec.dense(chosen, dtype), Spec.dense(chosen, _INT64), Spec.dense((len(dense),), _UINT8), Spec.of(dense),
        largest=largest))


def sort_launch(rows: ndarray, descending: bool) -> Callable[[ndarray], tuple[ndarray, ...]] | None:
    """`sort_rows` of short rows of row-major arrays of this layout: elements, indices, repetitions (uint8)."""
    n, dtype = rows.shape[-1], rows.dtype
    if dtype.char != "f" or not 1 <= n <= rank_sort.MAX_ROW:
        return None
    outs = ((rows.shape, dtype), (rows.shape, _INT64), (rows.shape[:-1], _UINT8))
    dense = rows.reshape(-1, n)
    return launch_of_outputs(outs, rank_sort.order(
        Spec.dense(dense.shape, dtype), Spec.dense(dense.shape, _INT64), Spec.dense((len(dense),), _UINT8),
        Spec.of(dense), descending=descending))


#: segments that introsort may split too often before it is replayed without the kernel
_MOST_LEFT = 1024


def partition(keys: ndarray, places: ndarray, limit: int, least: int) -> ndarray | None:
    """Introsort's partitions of int64 keys and their places, in place.

    Returns:
        The segments that were split `limit` times, (count, 2); None where they are too many, and nothing was done.
    """
    stack, left = np.empty(3 * (limit + 1), np.int64), np.empty((_MOST_LEFT, 2), np.int64)
    saved = keys.copy(), places.copy()
    count = introsort.partition()(keys.ctypes.data, places.ctypes.data, keys.size, limit, least, stack.ctypes.data,
                                  left.ctypes.data, _MOST_LEFT)
    if count < 0:
        keys[...], places[...] = saved
        return None
    return left[:count]


def insert(keys: ndarray, places: ndarray) -> None:
    """The stable insertion sort of int64 keys and their places, in place."""
    introsort.insert()(keys.ctypes.data, places.ctypes.data, keys.size)


ties.PARTITIONS.append(partition)
ties.INSERTIONS.append(insert)

__all__ = ["insert", "modes_launch", "modes_of_rows", "order_tied_rows", "partition", "select_top_k", "sort_launch",
           "sort_rows", "tied_rows_launch", "top_k_launch"]
