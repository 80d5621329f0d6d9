"""The element of a rank in each of few short rows: how many elements are smaller is counted for one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I32, I64, i64, loop

#: the most elements of a row
MOST = 16
#: words of a block: rows, their length, the rank
_ROWS, _LENGTH, _RANK, _WORDS = range(4)


def _generate(name: str, char: str, unique: bool) -> str:
    """The function `(None, values, indices, array)`: the values; None where a row has NaN.

    Args:
        unique: whether it also returns None where another element of the row is equal.
    """
    f, type_ = ArrayFunction(name, _WORDS, 3), TYPES[char]
    b, (values, indices, x) = f.b, f.data
    length, rank = f.word(_LENGTH), b.trunc(f.word(_RANK), I32)
    zero = ir.Constant(I32, 0)
    smaller, equal, found, skipped = (f.variable(I32, zero) for _ in range(4))
    place = f.variable(I64, i64(0))

    def element(row: Any, index: Any) -> Any:
        return b.load(b.gep(x, [b.add(row, index)], source_etype=type_), typ=type_, align=1)

    def count(memory: Any, row: Any, relation: str, value: Any) -> Any:
        b.store(zero, memory)
        with loop(b, i64(0), length) as j:
            fits = b.zext(b.fcmp_ordered(relation, element(row, j), value), I32)
            b.store(b.add(b.load(memory, typ=I32), fits), memory)
        return b.load(memory, typ=I32)

    with loop(b, i64(0), f.word(_ROWS)) as number:
        row = b.mul(number, length)
        with loop(b, i64(0), length) as i:
            value = element(row, i)
            with b.if_then(b.fcmp_unordered("!=", value, value), likely=False):
                f.leave(0)
        b.store(zero, found)
        with loop(b, i64(0), length) as i, b.if_then(b.icmp_signed("==", b.load(found, typ=I32), zero)):
            value = element(row, i)
            below = count(smaller, row, "<", value)
            with b.if_then(b.icmp_signed("<=", below, rank)):
                same = count(equal, row, "==", value)
                with b.if_then(b.icmp_signed(">", b.add(below, same), rank)):
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
                    b.store(ir.Constant(I32, 1), found)
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


__all__ = ["MOST", "function"]
