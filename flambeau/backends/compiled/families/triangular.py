"""Triangular systems, and Gaussian elimination of panels."""

from __future__ import annotations

import numpy as np

from ....codegen.linalg import triangular_systems
from ....codegen.linalg.panels import elimination
from ....codegen.matmul.substitution import substitute

#: right-hand sides up to which there is a dot product for each unknown
MOST_SIDES = 4


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool) -> np.ndarray | None:
    """The solution of a x = b, row-major; None where NumPy solves it.

    Args:
        a: (..., n, n), of which one triangle is read.
        b: (..., n, m), with the leading dimensions of `a`.
    """
    n, m = b.shape[-2:]
    if a.dtype.char not in "fd" or not a.dtype.isnative or b.dtype != a.dtype or a.shape[:-2] != b.shape[:-2]:
        return None
    if m > MOST_SIDES:
        return _solve_panels(a, b, upper, unit)
    if a.ndim > 3 or (a.ndim == 2 and not (a.flags.c_contiguous or a.flags.f_contiguous)):
        a = np.ascontiguousarray(a)
    x = np.array(b, order="C", copy=True)
    item = a.itemsize
    batch = x.size // (n * m) if n * m else 0
    step = a.strides[-3] if a.ndim == 3 else n * n * item
    substitute(a.dtype)(a.ctypes.data, x.ctypes.data, batch, n, m, step // item, a.strides[-2] // item,
                        a.strides[-1] // item, n - 1 if upper else 0, -1 if upper else 1, unit)
    return x


def _solve_panels(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """`solve_triangular` with several right-hand sides, in double precision."""
    n, m = b.shape[-2:]
    if a.ndim > 3 or not a.flags.c_contiguous:
        a = np.ascontiguousarray(a)
    x = np.array(b, order="C", copy=True)
    if x.size:
        solve, count = triangular_systems.function(a.dtype.char, x.size // (n * m), n, m, (n * n, n, 1), upper, unit)
        solve(x, np.empty(count, np.float64), a)
    return x


def eliminate_panels(panels: np.ndarray) -> np.ndarray | None:
    """Overwrite panels by their LU factors, with partial pivoting; None where there is no kernel.

    Args:
        panels: (b, m, n), row-major.

    Returns:
        (b, min(m, n)) int64: the row, from 0 on, that each step swaps with its own.
    """
    if panels.dtype.char not in "fd" or not panels.dtype.isnative or not panels.size:
        return None
    count, rows, columns = panels.shape
    pivots = np.empty((count, min(rows, columns)), np.int64)
    return elimination(panels.dtype.char, count, rows, columns)(None, pivots, panels)


__all__ = ["MOST_SIDES", "eliminate_panels", "solve_triangular"]
