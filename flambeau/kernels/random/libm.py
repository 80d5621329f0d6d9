"""The C library's float64 functions over arrays, as PyTorch's scalar kernels call them.

NumPy's vectorized versions may differ in the last bit, so float64 results are computed by `math`, which calls the
C library. Results that are rounded to fewer bits are computed by NumPy's version, and by the C library only where
NumPy's error bound does not determine the rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from . import accelerated

_MARGIN = 2.0**-48  # four times NumPy's documented bound of 4 ulp (2**-50)
_VECTOR: dict[Callable[[float], float], np.ufunc] = {math.log: np.log, math.log1p: np.log1p, math.tan: np.tan}


def map_scalar(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """`function`, of the module `math`, applied to every element of `x`, float64."""
    for kernel in accelerated.FUNCTIONS:
        result = kernel(function.__name__, x)
        if result is not None:
            return result
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


def monotone_map(function: Callable[[float], float], x: np.ndarray,
           finish: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`finish(function(x))`, where `finish` is monotone and rounds to fewer bits than float64."""
    with np.errstate(all="ignore"):
        near = _VECTOR[function](x)
        result, other = finish(near * (1.0 - _MARGIN)), finish(near * (1.0 + _MARGIN))
        unsure = np.flatnonzero(_bits(result) != _bits(other))
        if unsure.size:
            result[unsure] = finish(map_scalar(function, x[unsure]))
    return result


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")
