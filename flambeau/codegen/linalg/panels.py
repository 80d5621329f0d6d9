"""Gaussian elimination with partial pivoting of batches of panels (m, n) in one call of a built-in function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I64, i64, loop, smaller
from ..llvm.lowering import constant, intrinsic

#: words of a block: panels, their rows, their columns
_PANELS, _ROWS, _COLUMNS, _WORDS = range(4)


def _generate(name: str, char: str) -> str:
    """The function `(None, pivots, array)`, which overwrites the array with its factors: the pivots."""
    f = ArrayFunction(name, _WORDS, 2)
    b, (pivots, a), type_ = f.b, f.data, TYPES[char]
    size = np.dtype(char).itemsize
    m, n = f.word(_ROWS), f.word(_COLUMNS)
    count, best, chosen = smaller(b, m, n), f.variable(type_, constant(0.0, type_)), f.variable(I64, i64(0))
    with loop(b, i64(0), f.word(_PANELS)) as panel:
        matrix = b.gep(a, [b.mul(panel, b.mul(m, n))], source_etype=type_)

        def row(i: Any, matrix: Any = matrix) -> Any:
            return b.gep(matrix, [b.mul(i, n)], source_etype=type_)

        def at(start: Any, j: Any) -> Any:
            return b.gep(start, [j], source_etype=type_)

        def load(address: Any) -> Any:
            return b.load(address, typ=type_, align=size)

        with loop(b, i64(0), count) as k:
            top = row(k)
            b.store(intrinsic(b, "fabs", type_, [load(at(top, k))]), best)
            b.store(k, chosen)
            with loop(b, b.add(k, i64(1)), m) as i:
                magnitude, most = intrinsic(b, "fabs", type_, [load(at(row(i), k))]), b.load(best, typ=type_)
                is_larger = b.fcmp_ordered(">", magnitude, most)  # passes over NaN but the first, as BLAS does
                b.store(b.select(is_larger, magnitude, most), best)
                b.store(b.select(is_larger, i, b.load(chosen, typ=I64)), chosen)
            other = b.load(chosen, typ=I64)
            b.store(other, b.gep(pivots, [b.add(b.mul(panel, count), k)], source_etype=I64))
            with b.if_then(b.icmp_signed("!=", other, k)):
                below = row(other)
                with loop(b, i64(0), n) as j:
                    first, second = load(at(top, j)), load(at(below, j))
                    b.store(second, at(top, j), align=size)
                    b.store(first, at(below, j), align=size)
            pivot = load(at(top, k))
            divisor = b.select(b.fcmp_ordered("==", pivot, constant(0.0, type_)), constant(1.0, type_), pivot)
            start = b.add(k, i64(1))
            with loop(b, start, m) as i:
                here = row(i)
                factor = b.fdiv(load(at(here, k)), divisor)
                b.store(factor, at(here, k), align=size)
                with loop(b, start, n) as j:
                    b.store(b.fsub(load(at(here, j)), b.fmul(factor, load(at(top, j)))), at(here, j), align=size)
    f.leave(1)
    return str(f.module)


@cache
def _maker(char: str) -> Callable[[np.ndarray], Callable[..., np.ndarray]]:
    name = f"elimination_{char}"
    return entry_points.builtin_function_maker(name, _generate(name, char))


@lru_cache(256)
def elimination(char: str, panels: int, rows: int, columns: int) -> Callable[..., np.ndarray]:
    """The built-in function `(None, pivots, array)`, which overwrites panels with L below the diagonal, and U.

    Args:
        char: "f" or "d", the dtype of the array, (panels, rows, columns) and row-major; `pivots` is int64, (panels,
            min(rows, columns)): the row, from 0 on, that step i swaps with row i. A pivot that is 0 divides as 1.
    """
    return _maker(char)(np.array([panels, rows, columns, *entry_points.block_fields()], np.int64))


__all__ = ["elimination"]
