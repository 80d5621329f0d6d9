"""Slices added to large arrays where an index says, as `index_add` does it, by several threads.

Taking slices by an index is left to NumPy, which copies them as quickly.
"""

from __future__ import annotations

import numpy as np

from ...jit import indexing
from ...jit.launch import Spec
from .running import Plan, Plans

#: bytes from which on NumPy adds whole rows as quickly: a kernel's chunks are columns, which are then far apart
WIDE = 1024
_plans = Plans()


def added(target: np.ndarray, axis: int, index: np.ndarray, source: np.ndarray) -> bool:
    """``target[..., index[i], ...] += source[..., i, ...]``, in order, the index flat and in range; whether it was."""
    dtype = target.dtype
    if dtype.kind not in "fiu" or dtype.itemsize < 4 or source.dtype != dtype or target.ndim < 2 or (
            not source.size):
        return False  # elements, in place of slices, NumPy adds as quickly
    if axis == 0 and target.strides[0] >= WIDE:
        return False
    places = index.reshape((-1,) + (1,) * (target.ndim - 1 - axis))
    flag = np.empty(2, indexing.FLAG)
    arrays = (target, flag, source, places)
    key = (axis, dtype, index.dtype, *[each for x in (target, source, places) for each in (x.shape, x.strides)])
    plan = _plans.found.get(key)
    if plan is None:
        out, report, rows, where = Spec.of(target), Spec.of(flag), Spec.of(source), Spec.of(places)
        plan = _plans.keep(key, Plan((), indexing.put(out, report, rows, where, axis, fill=False)))
    plan.run(arrays)
    return True


__all__ = ["added"]
