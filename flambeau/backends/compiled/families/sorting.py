"""The best elements of rows of large arrays, and the order of rows, by kernels."""

from __future__ import annotations

import numpy as np

from ....codegen.sorting import radix_sort, rank_sort, top_k
from ....runtime.launch import Spec
from ..launching import Plan, Plans
from .indexing import taken

ndarray = np.ndarray
_plans = Plans()


def best(rows: ndarray, count: int, largest: bool) -> tuple[ndarray, ndarray, ndarray] | None:
    """The largest, or smallest, elements of every row, the best first; None: NumPy is to find them.

    Args:
        rows: (..., n).

    Returns:
        The elements (..., count), their places, and which rows are doubtful: equal elements may be chosen otherwise.
    """
    n = rows.shape[-1]
    if rows.dtype.char not in "fd" or not rows.dtype.isnative or not 1 <= count <= min(n, top_k.MOST):
        return None
    dense = np.ascontiguousarray(rows).reshape(-1, n)
    values, places = np.empty((len(dense), count), rows.dtype), np.empty((len(dense), count), np.int64)
    doubtful = np.empty(len(dense), np.uint8)
    key = (rows.dtype, dense.shape, count, largest)
    plan = _plans.found.get(key)
    if plan is None:
        specs = [Spec.of(x) for x in (values, places, doubtful, dense)]
        plan = _plans.keep(key, Plan((), top_k.best(*specs, largest=largest)))
    plan.run((values, places, doubtful, dense))
    shape = *rows.shape[:-1], count
    return values.reshape(shape), places.reshape(shape), doubtful.view(np.bool_).reshape(shape[:-1])


def ordered(rows: ndarray, back: bool) -> tuple[ndarray, ndarray, ndarray] | None:
    """The elements of every row in their order, equal ones in their own; None: NumPy is to sort them.

    Args:
        rows: (..., n).
        back: whether the largest come first.

    Returns:
        The elements, dense; their places; and which rows have equal elements.
    """
    n = rows.shape[-1]
    if rows.dtype.char != "f" or not rows.dtype.isnative or not 1 <= n < 1 << 31:
        return None
    dense = np.ascontiguousarray(rows).reshape(-1, n)
    places, repeated = np.empty(dense.shape, np.int64), np.empty(len(dense), np.uint8)
    key = (dense.shape, back)
    plan = _plans.found.get(key)
    specs = [Spec.of(x) for x in (places, repeated, dense)] if plan is None else []
    values: ndarray | None
    if n <= rank_sort.MOST:
        values = np.empty(dense.shape, dense.dtype)
        if plan is None:
            plan = _plans.keep(key, Plan((), rank_sort.order(Spec.of(values), *specs, back=back)))
        plan.run((values, places, repeated, dense))
    else:
        if plan is None:
            plan = _plans.keep(key, Plan((), radix_sort.order(*specs, back=back)))
        plan.run((places, repeated, dense))
        values = taken(dense, places, 1, dense.shape)
    if values is None:
        return None
    return values.reshape(rows.shape), places.reshape(rows.shape), repeated.view(np.bool_).reshape(rows.shape[:-1])


__all__ = ["best", "ordered"]
