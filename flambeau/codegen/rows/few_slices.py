"""Sums and extrema of few elements along a dimension, one after the other, as NumPy adds along all but the last one.

More than 128 terms are added in two blocks, as in `backends.numpy.summation`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I8, i64, loop, smaller
from ..llvm.lowering import constant, intrinsic

SUM, LARGEST, SMALLEST = "sum", "largest", "smallest"
#: words of a block: the sizes of the dimensions before, of the dimension itself, and of those after it
_OUTER, _LENGTH, _INNER, _WORDS = range(4)
_LANES = 8
_BLOCK = 128
#: the most terms of a sum: NumPy has another order for several whole blocks
MOST_TERMS = 2 * _BLOCK - 1


def _generate(name: str, char: str, what: str) -> str:
    """The function `(None, result, array)`: the result; None where an extremum is 0, whose sign is open, or NaN."""
    f, type_ = ArrayFunction(name, _WORDS, 2), TYPES[char]
    b, (out, x) = f.b, f.data
    vector, masks = ir.VectorType(type_, _LANES), ir.VectorType(I8, _LANES)
    length, inner = f.word(_LENGTH), f.word(_INNER)
    whole = b.and_(inner, i64(-_LANES))
    unclear = f.variable(I8, ir.Constant(I8, 0))

    def reduce(start: Any, target: Any, kind: Any, memory: Any, mask: Any) -> None:
        zero = constant(0, kind) if kind is vector else ir.Constant(type_, 0.0)

        def element(index: Any) -> Any:
            place = b.gep(x, [b.add(start, b.mul(index, inner))], source_etype=type_)
            return b.load(place, typ=kind, align=1)

        if what == SUM:
            total = totals[kind]
            b.store(zero, total)
            with loop(b, i64(0), length, _BLOCK) as begin:
                b.store(zero, memory)  # NumPy begins with 0
                with loop(b, begin, smaller(b, b.add(begin, i64(_BLOCK)), length)) as i:
                    b.store(b.fadd(b.load(memory, typ=kind), element(i)), memory)
                b.store(b.fadd(b.load(total, typ=kind), b.load(memory, typ=kind)), total)
            found = b.load(total, typ=kind)
        else:
            b.store(element(i64(0)), memory)
            with loop(b, i64(1), length) as i:
                so_far, value = b.load(memory, typ=kind), element(i)  # NaN stays, whether it is there or comes
                better = b.fcmp_unordered(">" if what == LARGEST else "<", value, so_far)
                is_nan = b.fcmp_unordered("!=", so_far, so_far)
                b.store(b.select(b.and_(better, b.not_(is_nan)), value, so_far), memory)
            found = b.load(memory, typ=kind)
            flags = b.zext(b.fcmp_unordered("==", found, zero), mask)  # true of NaN, too
            flag = intrinsic(b, "vector.reduce.or", I8, [flags], [masks]) if mask is masks else flags
            b.store(b.or_(b.load(unclear, typ=I8), flag), unclear)
        b.store(found, b.gep(out, [target], source_etype=type_), align=1)

    totals = {kind: f.variable(kind, constant(0, kind) if kind is vector else ir.Constant(type_, 0.0))
              for kind in (type_, vector)}
    one, several = f.variable(type_, ir.Constant(type_, 0.0)), f.variable(vector, constant(0, vector))
    with loop(b, i64(0), f.word(_OUTER)) as number:
        first, target = b.mul(number, b.mul(length, inner)), b.mul(number, inner)
        with loop(b, i64(0), whole, _LANES) as j:
            reduce(b.add(first, j), b.add(target, j), vector, several, masks)
        with loop(b, whole, inner) as j:
            reduce(b.add(first, j), b.add(target, j), type_, one, I8)
    with b.if_then(b.icmp_signed("!=", b.load(unclear, typ=I8), ir.Constant(I8, 0)), likely=False):
        f.leave(0)
    f.leave(1)
    return str(f.module)


@cache
def _maker(char: str, what: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"{what}_of_slices_{char}"
    return entry_points.builtin_function_maker(name, _generate(name, char, what))


def function(dtype: np.dtype, what: str, outer: int, length: int, inner: int) -> Callable[..., Any]:
    """The built-in function `(None, result, array)` of row-major arrays: the result.

    It returns None where an extremum is 0, whose sign depends on the order, or NaN.

    Args:
        dtype: float32 or float64.
        what: `SUM`, `LARGEST` or `SMALLEST`.
        outer, length, inner: the sizes of the dimensions before the reduced one, of itself, and of those after it.
    """
    return _maker(dtype.char, what)(np.array([outer, length, inner, *entry_points.block_fields()], np.int64))


__all__ = ["LARGEST", "MOST_TERMS", "SMALLEST", "SUM", "function"]
