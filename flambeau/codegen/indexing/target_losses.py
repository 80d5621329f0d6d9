"""Negative log likelihoods of targets in one call: each row's element of its class, summed in NumPy's order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm import numpy_sums
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I32, I64, i64, loop, word

I16 = ir.IntType(16)
#: the type of elements in float16, and in bfloat16
HALF, BFLOAT16 = "e", "b"
#: words of a block: rows, classes, the class that is ignored, whether the sum is divided
_ROWS, _CLASSES, _IGNORED, _DIVIDES, _WORDS = range(5)


def _generate(name: str, char: str) -> str:
    """The function `(None, result, picked, array, targets)`: the result; None where a target is no class."""
    f = ArrayFunction(name, _WORDS, 4)
    b, (out, picked, x, targets) = f.b, f.data
    type_, rows, classes, ignored = TYPES.get(char, TYPES["f"]), f.word(_ROWS), f.word(_CLASSES), f.word(_IGNORED)
    add = numpy_sums.any_terms(f.module, type_)
    counted = f.variable(I64, i64(0))
    zero = ir.Constant(type_, 0.0)

    def element(place: Any) -> Any:
        if char == BFLOAT16:
            bits = b.load(b.gep(x, [place], source_etype=I16), typ=I16, align=1)
            return b.bitcast(b.shl(b.zext(bits, I32), ir.Constant(I32, 16)), type_)
        if char == HALF:
            return b.fpext(b.load(b.gep(x, [place], source_etype=ir.HalfType()), typ=ir.HalfType(), align=1), type_)
        return b.load(b.gep(x, [place], source_etype=type_), typ=type_, align=1)

    with loop(b, i64(0), rows) as i:
        target = word(b, targets, i)
        place = b.gep(picked, [i], source_etype=type_)
        with b.if_else(b.icmp_signed("==", target, ignored), likely=False) as (skip, pick):
            with skip:
                b.store(zero, place, align=1)
            with pick:
                with b.if_then(b.icmp_unsigned(">=", target, classes), likely=False):  # negative ones are large
                    f.leave(0)
                b.store(element(b.add(b.mul(i, classes), target)), place, align=1)
                b.store(b.add(b.load(counted, typ=I64), i64(1)), counted)
    total = b.fsub(zero, b.call(add, [picked, rows, i64(1)]))
    count = b.select(b.icmp_signed("!=", f.word(_DIVIDES), i64(0)), b.load(counted, typ=I64), i64(1))
    b.store(b.fdiv(total, b.sitofp(count, type_)), out, align=1)
    f.leave(1)
    return str(f.module)


@cache
def _maker(char: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"target_losses_{char}"
    return entry_points.builtin_function_maker(name, _generate(name, char))


def function(char: str, rows: int, classes: int, ignored: int, mean: bool) -> Callable[..., Any]:
    """The built-in function `(None, result, picked, array, targets)` of row-major arrays, the targets of int64.

    It returns the result, a float32 or float64; None where a target is neither a class nor the ignored one.

    Args:
        char: of the array's dtype, `HALF` or `BFLOAT16`, for which the result and `picked` have float32.
        rows: at least one; `picked` has memory for an element of each.
        mean: whether the sum is divided by the number of rows that are not ignored.
    """
    return _maker(char)(np.array([rows, classes, ignored, mean, *entry_points.block_fields()], np.int64))


__all__ = ["BFLOAT16", "HALF", "function"]
