"""Gathers of rows in one call: a built-in function that copies a block for each index."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import ArrayFunction
from ..llvm.loop_nests import I1, I64, POINTER, at, i64, loop, word
from ..llvm.lowering import intrinsic

#: words of a block: rounds, indices, the size of the indexed dimension, the bytes of a row
_ROUNDS, _COUNT, _SIZE, _BYTES, _WORDS = range(5)


def _generate(name: str, wraps: bool) -> str:
    """The function `(None, result, array, index)`: the result; None where an index is out of range.

    Args:
        wraps: whether negative indices count from the end.
    """
    f = ArrayFunction(name, _WORDS, 3)
    b, (out, x, index) = f.b, f.data
    count, size, bytes_ = (f.word(each) for each in (_COUNT, _SIZE, _BYTES))

    def position(i: Any) -> Any:
        found = word(b, index, i)
        return b.select(b.icmp_signed("<", found, i64(0)), b.add(found, size), found) if wraps else found

    with loop(b, i64(0), count) as i:
        with b.if_then(b.icmp_unsigned(">=", position(i), size), likely=False):  # negative ones are large
            f.leave(0)
    with loop(b, i64(0), f.word(_ROUNDS)) as number, loop(b, i64(0), count) as i:
        source = b.mul(b.add(b.mul(number, size), position(i)), bytes_)
        target = b.mul(b.add(b.mul(number, count), i), bytes_)
        intrinsic(b, "memcpy", ir.VoidType(), [at(b, out, target), at(b, x, source), bytes_, ir.Constant(I1, 0)],
                  [POINTER, POINTER, I64])
    f.leave(1)
    return str(f.module)


@cache
def _maker(wraps: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = "pick_rows_wrapped" if wraps else "pick_rows"
    return entry_points.builtin_function_maker(name, _generate(name, wraps))


def function(rounds: int, indices: int, size: int, row_bytes: int, wraps: bool) -> Callable[..., Any]:
    """The built-in function `(None, result, array, index)` of row-major arrays, the index of int64: the result.

    It returns None where an index is out of range.

    Args:
        rounds: the size of the dimensions before the indexed one.
        indices: how many there are.
        size: of the indexed dimension.
        row_bytes: those of the dimensions after it.
        wraps: whether negative indices count from the end.
    """
    return _maker(wraps)(np.array([rounds, indices, size, row_bytes, *entry_points.block_fields()], np.int64))


__all__ = ["function"]
