"""The C library's double functions over arrays: PyTorch's scalar kernels call them, one number at a time.

NumPy's vector versions may differ in the last bit, so a float64 result goes through `math`, which hands
over to the C library. A result that is rounded to fewer bits is settled by NumPy's version wherever its
error bound cannot matter, and by the C library in the few other places.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_MARGIN = 2.0**-48  # NumPy claims 4 units in the last place, 2**-50; this is four times as much
_VECTOR: dict[Callable[[float], float], np.ufunc] = {math.log: np.log, math.log1p: np.log1p, math.tan: np.tan}


def each(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """`function`, of `math`, of every number of `x`, float64."""
    try:
        return np.fromiter(map(function, x.tolist()), np.float64, x.size)
    except (ValueError, OverflowError):
        return np.fromiter((_at_edge(function, v) for v in x.tolist()), np.float64, x.size)


def _at_edge(function: Callable[[float], float], x: float) -> float:
    """`math` raises where the C library returns an infinity."""
    try:
        return function(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return -math.inf


def settle(function: Callable[[float], float], x: np.ndarray,
           finish: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`finish(function(x))`, where `finish` is monotone and rounds to fewer bits than float64 has."""
    with np.errstate(all="ignore"):
        near = _VECTOR[function](x)
        result, other = finish(near * (1.0 - _MARGIN)), finish(near * (1.0 + _MARGIN))
        unsure = np.flatnonzero(_bits(result) != _bits(other))
        if unsure.size:
            result[unsure] = finish(each(function, x[unsure]))
    return result


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")
