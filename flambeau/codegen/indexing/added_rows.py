"""Scatters of rows in one call: a built-in function that adds a block for each index, in the order of the indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I1, I8, I64, POINTER, i64, loop, word
from ..llvm.lowering import intrinsic

#: words of a block: indices, the size of the indexed dimension, the elements of a row
_COUNT, _SIZE, _WIDTH, _WORDS = range(4)
#: elements that are added at once
_LANES = 8
#: the most functions that are kept
FUNCTIONS = 4096


def _generate(name: str, char: str, zeros: bool) -> str:
    """The function `(None, result[, array], index, source)`: the result; None where an index is out of range.

    Args:
        char: the elements' type.
        zeros: whether the array is zeros, and no argument.
    """
    f = ArrayFunction(name, _WORDS, 3 + (not zeros))
    b, type_ = f.b, TYPES[char]
    out, index, source = f.data[0], f.data[-2], f.data[-1]
    count, size, width = (f.word(each) for each in (_COUNT, _SIZE, _WIDTH))
    with loop(b, i64(0), count) as i:
        with b.if_then(b.icmp_unsigned(">=", word(b, index, i), size), likely=False):  # negative ones are large
            f.leave(0)
    bytes_ = b.mul(b.mul(size, width), i64(8 if char == "d" else 4))
    if zeros:
        intrinsic(b, "memset", ir.VoidType(), [out, ir.Constant(I8, 0), bytes_, ir.Constant(I1, 0)], [POINTER, I64])
    else:
        intrinsic(b, "memcpy", ir.VoidType(), [out, f.data[1], bytes_, ir.Constant(I1, 0)], [POINTER, POINTER, I64])
    whole = b.udiv(width, i64(_LANES))

    def add(to: Any, of: Any, typ: Any) -> None:
        places = [b.gep(base, [at], source_etype=type_) for base, at in ((out, to), (source, of))]
        first, second = (b.load(place, typ=typ, align=1) for place in places)
        b.store(b.fadd(first, second), places[0], align=1)

    with loop(b, i64(0), count) as i:
        to, of = b.mul(word(b, index, i), width), b.mul(i, width)
        with loop(b, i64(0), whole) as k:
            at = b.mul(k, i64(_LANES))
            add(b.add(to, at), b.add(of, at), ir.VectorType(type_, _LANES))
        with loop(b, b.mul(whole, i64(_LANES)), width) as k:
            add(b.add(to, k), b.add(of, k), type_)
    f.leave(1)
    return str(f.module)


@cache
def _maker(char: str, zeros: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"add_rows_{char}{'_into_zeros' * zeros}"
    return entry_points.builtin_function_maker(name, _generate(name, char, zeros))


@lru_cache(FUNCTIONS)
def function(char: str, indices: int, size: int, width: int, zeros: bool) -> Callable[..., Any]:
    """The built-in function `(None, result[, array], index, source)` of row-major arrays, the index of int64.

    It returns None where an index is out of range; else the result. Rows at one index are added in their order.

    Args:
        char: the elements' type, "f" or "d".
        indices: how many there are, and how many rows the source has.
        size: the rows of the result.
        width: the elements of a row.
        zeros: whether the array is zeros, and no argument.
    """
    return _maker(char, zeros)(np.array([indices, size, width, *entry_points.block_fields()], np.int64))


__all__ = ["FUNCTIONS", "function"]
