"""The element of a rank in each of few short rows: how many elements are smaller is counted for one after the other.

Elements that are beyond one that was counted before are passed over, so that few are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I32, I64, i64, loop
from ..llvm.lowering import constant, intrinsic, splat

#: words of a block: rows, their length, the rank
_ROWS, _LENGTH, _RANK, _WORDS = range(4)


def _generate(name: str, char: str, unique: bool) -> str:
    """The function `(None, values, indices, array)`: the values; None where a row has NaN.

    Args:
        unique: whether it also returns None where another element of the row is equal.
    """
    f, type_ = ArrayFunction(name, _WORDS, 3), TYPES[char]
    b, (values, indices, x) = f.b, f.data
    lanes = 16 if char == "f" else 8
    vector, counts = ir.VectorType(type_, lanes), ir.VectorType(I32, lanes)
    length, rank = f.word(_LENGTH), b.trunc(f.word(_RANK), I32)
    whole = b.and_(length, i64(-lanes))
    zero = ir.Constant(I32, 0)
    skipped, total = (f.variable(I32, zero) for _ in range(2))
    totals = f.variable(counts, constant(0, counts))
    place = f.variable(I64, i64(0))
    nan = ir.Constant(type_, float("nan"))
    low, high = (f.variable(type_, nan) for _ in range(2))  # between which the element is, where they are numbers

    def element(row: Any, index: Any) -> Any:
        return b.load(b.gep(x, [b.add(row, index)], source_etype=type_), typ=type_, align=1)

    def count(row: Any, fits: Callable[[Any, int], Any]) -> Any:
        """How many elements of a row fit.

        Args:
            fits: (elements, lanes) -> whether they do.
        """
        b.store(constant(0, counts), totals)
        with loop(b, i64(0), whole, lanes) as j:
            several = b.load(b.gep(x, [b.add(row, j)], source_etype=type_), typ=vector, align=1)
            b.store(b.add(b.load(totals, typ=counts), b.zext(fits(several, lanes), counts)), totals)
        b.store(intrinsic(b, "vector.reduce.add", I32, [b.load(totals, typ=counts)], [counts]), total)
        with loop(b, whole, length) as j:
            b.store(b.add(b.load(total, typ=I32), b.zext(fits(element(row, j), 0), I32)), total)
        return b.load(total, typ=I32)

    def compared(relation: str, value: Any) -> Callable[[Any, int], Any]:
        return lambda elements, lanes: b.fcmp_ordered(relation, elements, splat(b, value, lanes))

    with loop(b, i64(0), f.word(_ROWS)) as number:
        row = b.mul(number, length)
        nans = count(row, lambda elements, _: b.fcmp_unordered("!=", elements, elements))
        with b.if_then(b.icmp_signed(">", nans, zero), likely=False):
            f.leave(0)
        after = b.append_basic_block("found")
        b.store(nan, low)
        b.store(nan, high)
        with loop(b, i64(0), length) as i:
            value = element(row, i)
            outside = b.or_(b.fcmp_ordered("<=", value, b.load(low, typ=type_)),
                            b.fcmp_ordered(">=", value, b.load(high, typ=type_)))
            with b.if_then(b.not_(outside)):
                below = count(row, compared("<", value))
                same = count(row, compared("==", value))
                is_higher = b.icmp_signed(">", below, rank)
                b.store(b.select(is_higher, value, b.load(high, typ=type_)), high)
                b.store(b.select(is_higher, b.load(low, typ=type_), value), low)
                with b.if_then(b.and_(b.not_(is_higher), b.icmp_signed(">", b.add(below, same), rank))):
                    if unique:
                        with b.if_then(b.icmp_signed(">", same, ir.Constant(I32, 1)), likely=False):
                            f.leave(0)
                    # of equal elements the one that a stable sort has at this rank
                    b.store(b.sub(rank, below), skipped)
                    with loop(b, i64(0), length) as j, b.if_then(b.fcmp_ordered("==", element(row, j), value)):
                        left = b.load(skipped, typ=I32)
                        with b.if_then(b.icmp_signed("==", left, zero)):
                            b.store(j, place)
                        b.store(b.sub(left, ir.Constant(I32, 1)), skipped)
                    at_rank = b.load(place, typ=I64)
                    b.store(element(row, at_rank), b.gep(values, [number], source_etype=type_), align=1)
                    b.store(at_rank, b.gep(indices, [number], source_etype=I64))
                    b.branch(after)
                    b.position_at_start(b.append_basic_block("next"))
        b.branch(after)
        b.position_at_end(after)
    f.leave(1)
    return str(f.module)


@cache
def _maker(char: str, unique: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"element_of_rank_{char}{'_unique' * unique}"
    return entry_points.builtin_function_maker(name, _generate(name, char, unique))


def function(dtype: np.dtype, rows: int, length: int, rank: int, unique: bool) -> Callable[..., Any]:
    """The built-in function `(None, values, indices, array)` of row-major arrays, the indices of int64: the values.

    It returns None where a row has NaN.

    Args:
        unique: whether it also returns None where another element of the row is equal.
    """
    return _maker(dtype.char, unique)(np.array([rows, length, rank, *entry_points.block_fields()], np.int64))


__all__ = ["function"]
