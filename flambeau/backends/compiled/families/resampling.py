"""Kernels of resampling along a dimension (`interpolate`) and its transpose.

Both return None where NumPy has to compute the result: another dtype or layout, or too many taps.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....codegen.resampling import resampling
from .. import empty_array
from ..launching import Plan, PlanCache, launch_of_result

ndarray = np.ndarray
_plans = PlanCache()


def _is_supported(x: ndarray) -> bool:
    return x.__class__ is ndarray and x.dtype.char in "fd" and x.dtype.isnative and x.flags.c_contiguous and x.size > 0


def _run(x: ndarray, axis: int, outputs: int, key: Any, plan: Plan | None, taps: Any) -> ndarray | None:
    lines, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1:])
    if plan is None:
        positions, weights = taps()
        if len(positions) > resampling.MAX_TAPS or not outputs:
            return None
        launches = resampling.launches(x.dtype, lines, x.shape[axis], inner, positions, weights)
        plan = _plans.insert(key, Plan((), launches))
    out = empty_array((*x.shape[:axis], outputs, *x.shape[axis + 1:]), x.dtype)
    plan.run((out, x))
    return out


def resample(x: ndarray, dim: int, positions: Any, weights: Any) -> ndarray | None:
    """The sums over taps of weights · x[positions] along a dimension, counted from the end."""
    if not _is_supported(x):
        return None
    key = "forward", x.dtype, x.shape, dim, positions, weights
    return _run(x, x.ndim + dim, len(positions[0]), key, _plans.plans.get(key),
                lambda: (np.array(positions), np.array(weights)))


def resample_launch(shape: tuple[int, ...], dtype: np.dtype, dim: int, positions: Any, weights: Any) -> Any:
    """`resample` of row-major arrays of a shape and dtype; None if there is none."""
    axis, outputs = len(shape) + dim, len(positions[0])
    if dtype.char not in "fd" or len(positions) > resampling.MAX_TAPS or not outputs or not prod(shape):
        return None
    launches = resampling.launches(dtype, prod(shape[:axis]), shape[axis], prod(shape[axis + 1:]),
                                   np.array(positions), np.array(weights))
    return launch_of_result((*shape[:axis], outputs, *shape[axis + 1:]), dtype, launches, 1)


def resample_backward(g: ndarray, dim: int, size: int, positions: Any, weights: Any) -> ndarray | None:
    """The transpose of `resample`: each element, times its weights, added at its positions."""
    if not _is_supported(g):
        return None
    key = "backward", g.dtype, g.shape, dim, size, positions, weights
    return _run(g, g.ndim + dim, size, key, _plans.plans.get(key), lambda: _transposed(size, positions, weights))


def _transposed(size: int, positions: Any, weights: Any) -> tuple[ndarray, ndarray]:
    """The taps (most, size) of the transpose: outputs by position, in the order of taps; missing ones weigh 0."""
    found: list[list[tuple[int, float]]] = [[] for _ in range(size)]
    for row, column in zip(positions, weights, strict=True):
        for output, (position, weight) in enumerate(zip(row, column, strict=True)):
            if weight:
                found[position].append((output, weight))
    most = max(1, *map(len, found))
    padded = [each + [(0, 0.0)] * (most - len(each)) for each in found]
    table = np.array(padded, np.float64).transpose(2, 1, 0)
    return table[0].astype(np.int64), table[1]


__all__ = ["resample", "resample_backward", "resample_launch"]
