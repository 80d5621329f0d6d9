"""The most frequent element of each row in one call: C++'s introsort of (key, place), then the longest run.

The place of an element is that of the last one of its run, as in PyTorch, so that each exchange counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I32, I64, POINTER, i64, loop, word
from . import introsort

#: segments up to this length are left to the insertion sort
_LEAST = 16
#: words of a block: rows, their length, how often segments are split, the addresses of introsort's two functions
_ROWS, _LENGTH, _LIMIT, _PARTITION, _INSERT, _WORDS = range(6)
_PARTITION_TYPE, _INSERT_TYPE = introsort.TYPES


def _generate(name: str, char: str) -> str:
    """The function `(None, values, indices, keys, places, stack, array)`: the values; None for NaN, or rows that are
    to be sorted by a heap."""
    f = ArrayFunction(name, _WORDS, 6)
    b, (values, indices, keys, places, stack, x), type_ = f.b, f.data, TYPES[char]
    length = f.word(_LENGTH)
    partition = FunctionPointer(b.inttoptr(f.word(_PARTITION), POINTER), _PARTITION_TYPE)
    insert = FunctionPointer(b.inttoptr(f.word(_INSERT), POINTER), _INSERT_TYPE)
    run, longest, last = (f.variable(I64, i64(0)) for _ in range(3))

    def key_of(value: Any) -> Any:
        """An integer in the order of the elements."""
        if char == "l":
            return value
        value = b.fadd(value, ir.Constant(type_, 0.0))  # one key for both zeros
        with b.if_then(b.fcmp_unordered("!=", value, value), likely=False):
            f.leave(0)
        bits = b.bitcast(value, I32 if char == "f" else I64)
        bits = b.sext(bits, I64) if char == "f" else bits
        mask = i64(0x7FFFFFFF if char == "f" else 0x7FFFFFFFFFFFFFFF)
        return b.select(b.icmp_signed("<", bits, i64(0)), b.xor(bits, mask), bits)

    with loop(b, i64(0), f.word(_ROWS)) as number:
        start = b.mul(number, length)
        with loop(b, i64(0), length) as i:
            value = b.load(b.gep(x, [b.add(start, i)], source_etype=type_), typ=type_, align=1)
            b.store(key_of(value), b.gep(keys, [i], source_etype=I64))
            b.store(i, b.gep(places, [i], source_etype=I64))
        left = b.call(partition, [keys, places, length, f.word(_LIMIT), i64(_LEAST), stack, stack, i64(0)])
        with b.if_then(b.icmp_signed("!=", left, i64(0)), likely=False):
            f.leave(0)
        b.call(insert, [keys, places, length])
        b.store(i64(1), run)
        b.store(i64(1), longest)
        b.store(i64(0), last)
        with loop(b, i64(1), length) as i:
            same = b.icmp_signed("==", word(b, keys, i), word(b, keys, b.sub(i, i64(1))))
            count = b.select(same, b.add(b.load(run, typ=I64), i64(1)), i64(1))
            b.store(count, run)
            best = b.load(longest, typ=I64)
            is_longer = b.icmp_signed(">", count, best)
            b.store(b.select(is_longer, count, best), longest)
            b.store(b.select(is_longer, i, b.load(last, typ=I64)), last)
        place = word(b, places, b.load(last, typ=I64))
        b.store(place, b.gep(indices, [number], source_etype=I64))
        b.store(b.load(b.gep(x, [b.add(start, place)], source_etype=type_), typ=type_, align=1),
                b.gep(values, [number], source_etype=type_), align=1)
    f.leave(1)
    return str(f.module)


@cache
def _maker(char: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"modes_{char}"
    return entry_points.builtin_function_maker(name, _generate(name, char))


def stack_words(length: int) -> int:
    """How many int64 numbers the stack for rows of a length has."""
    return 3 * _limit(length) + 3


def _limit(length: int) -> int:
    """How often introsort splits a segment."""
    return 2 * (length.bit_length() - 1)


def function(dtype: np.dtype, rows: int, length: int) -> Callable[..., Any]:
    """The built-in function `(None, values, indices, keys, places, stack, array)` of row-major arrays: the values.

    It returns None where there is NaN, or where introsort would use a heap.

    Args:
        dtype: float32, float64 or int64, of the values and the array; all others have int64.
        length: of a row, at least 1, and of `keys` and `places`; the stack has `stack_words`.
    """
    addresses = [introsort.address(name) for name in ("introsort_partition", "introsort_insert")]
    block = [rows, length, _limit(length), *addresses, *entry_points.block_fields()]
    return _maker(dtype.char)(np.array(block, np.int64))


__all__ = ["function", "stack_words"]
