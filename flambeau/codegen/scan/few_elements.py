"""Running sums and products of few elements in one call: computed in double along one dimension, and rounded."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import i64, loop

#: words of a block: sizes before the dimension, of it, and after it
_OUTER, _LENGTH, _INNER, _WORDS = range(4)
_DOUBLE = ir.DoubleType()
#: rows that are computed at once, since each element waits for the one before
_TOGETHER = 4


def _generate(name: str, product: bool, char: str) -> str:
    """The function `(result, array)`: the result."""
    f, type_ = ArrayFunction(name, _WORDS, 2, 0), TYPES[char]
    b, (out, x) = f.b, f.data
    length, inner = f.word(_LENGTH), f.word(_INNER)
    totals = [f.variable(_DOUBLE, ir.Constant(_DOUBLE, 0.0)) for _ in range(_TOGETHER)]

    def element(base: Any, index: Any) -> Any:
        return b.gep(base, [index], source_etype=type_)

    def advance(total: Any, place: Any, j: Any) -> None:
        value = b.load(element(x, place), typ=type_, align=1)
        value = b.fpext(value, _DOUBLE) if char == "f" else value
        so_far = b.load(total, typ=_DOUBLE)
        more = b.fmul(so_far, value) if product else b.fadd(so_far, value)
        result = b.select(b.icmp_signed("==", j, i64(0)), value, more)  # -0 stays -0
        b.store(result, total)
        b.store(b.fptrunc(result, type_) if char == "f" else result, element(out, place), align=1)

    step, outer = b.mul(length, inner), f.word(_OUTER)
    several = b.mul(b.sdiv(outer, i64(_TOGETHER)), i64(_TOGETHER))
    with loop(b, i64(0), several, _TOGETHER) as i, loop(b, i64(0), inner) as k:
        start = b.add(b.mul(i, step), k)
        with loop(b, i64(0), length) as j:
            place = b.add(start, b.mul(j, inner))
            for number, total in enumerate(totals):
                advance(total, b.add(place, b.mul(i64(number), step)), j)
    with loop(b, several, outer) as i, loop(b, i64(0), inner) as k:
        start = b.add(b.mul(i, step), k)
        with loop(b, i64(0), length) as j:
            advance(totals[0], b.add(start, b.mul(j, inner)), j)
    f.leave(0)
    return str(f.module)


@cache
def _maker(product: bool, char: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"few_running_{'products' if product else 'sums'}_{char}"
    return entry_points.builtin_function_maker(name, _generate(name, product, char))


def function(product: bool, dtype: np.dtype, outer: int, length: int, inner: int) -> Callable[..., Any]:
    """The built-in function `(result, array)` of row-major arrays of a dtype, float32 or float64: the result.

    Args:
        outer, length, inner: sizes before the dimension, of it, and after it.
    """
    return _maker(product, dtype.char)(np.array([outer, length, inner, *entry_points.block_fields()], np.int64))


__all__ = ["function"]
