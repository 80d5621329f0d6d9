"""The best elements of long rows of large arrays, by a kernel."""

from __future__ import annotations

import numpy as np

from ...jit import selecting
from ...jit.launch import Spec
from .running import Plan, Plans

ndarray = np.ndarray
_plans = Plans()


def best(rows: ndarray, count: int, largest: bool) -> tuple[ndarray, ndarray] | None:
    """Where the largest, or smallest, elements of every row are, the best first; None: NumPy is to find them.

    Args:
        rows: (..., n).

    Returns:
        The places (..., count), and which rows are doubtful: equal elements may be chosen otherwise.
    """
    n = rows.shape[-1]
    if rows.dtype.char not in "fd" or not rows.dtype.isnative or not 1 <= count <= min(n, selecting.MOST):
        return None
    dense = np.ascontiguousarray(rows).reshape(-1, n)
    places, doubtful = np.empty((len(dense), count), np.int64), np.empty(len(dense), np.uint8)
    key = (rows.dtype, dense.shape, count, largest)
    plan = _plans.found.get(key)
    if plan is None:
        specs = Spec.of(places), Spec.of(doubtful), Spec.of(dense)
        plan = _plans.keep(key, Plan((), selecting.best(*specs, largest)))
    plan.run((places, doubtful, dense))
    return places.reshape(*rows.shape[:-1], count), doubtful.view(np.bool_).reshape(rows.shape[:-1])


__all__ = ["best"]
