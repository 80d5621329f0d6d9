"""Rearrangements of few elements in one call: built-in functions that copy elements, or runs of them, from a table."""

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

#: the most elements of a result, the bytes of an element, and the most runs
MOST, SIZES, RUNS = 4096, (1, 2, 4, 8), 1024

#: words of a block: the number of elements, the address of the table
_COUNT, _PLACES, _WORDS = range(3)
_VOID = ir.VoidType()


def _generate(name: str, size: int) -> str:
    """The function `(result, array)`: the result, whose elements are those at the places; 0 at negative ones."""
    f, type_ = ArrayFunction(name, _WORDS, 2, 0), ir.IntType(8 * size)
    b, (out, source) = f.b, f.data
    zero = f.variable(type_, ir.Constant(type_, 0))
    places = b.inttoptr(f.word(_PLACES), POINTER)
    with loop(b, i64(0), f.word(_COUNT)) as i:
        place = word(b, places, i)
        element = b.select(b.icmp_signed("<", place, i64(0)), zero, at(b, source, place))
        b.store(b.load(element, typ=type_, align=1), b.gep(out, [i], source_etype=type_), align=1)
    f.leave(0)
    return str(f.module)


def _generate_runs(name: str) -> str:
    """The function `(result, array)`: the result, which runs of bytes follow one another in; 0 at negative places."""
    f = ArrayFunction(name, _WORDS, 2, 0)
    b, (out, source) = f.b, f.data
    to = f.variable(POINTER, out)
    places = b.inttoptr(f.word(_PLACES), POINTER)
    with loop(b, i64(0), f.word(_COUNT)) as i:
        at_word = b.mul(i, i64(2))
        place, size = word(b, places, at_word), word(b, places, b.add(at_word, i64(1)))
        here = b.load(to, typ=POINTER)
        with b.if_else(b.icmp_signed("<", place, i64(0))) as (zeros, elements):
            with zeros:
                intrinsic(b, "memset", _VOID, [here, ir.Constant(ir.IntType(8), 0), size, ir.Constant(I1, 0)],
                          [POINTER, I64])
            with elements:
                intrinsic(b, "memcpy", _VOID, [here, at(b, source, place), size, ir.Constant(I1, 0)],
                          [POINTER, POINTER, I64])
        b.store(at(b, here, size), to)
    f.leave(0)
    return str(f.module)


@cache
def _run_maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    return entry_points.builtin_function_maker("pick_runs", _generate_runs("pick_runs"))


def runs(table: np.ndarray) -> Callable[..., Any]:
    """The built-in function `(result, array)` that copies runs of bytes into a new array, and returns that.

    Args:
        table: int64 pairs: the offset in bytes from the array's first element, and the bytes of a run; a negative
            offset stands for zeros. It has to live as long as the function.
    """
    return _run_maker()(np.array([len(table), table.ctypes.data, *entry_points.block_fields()], np.int64))


@cache
def _maker(size: int) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"pick_{size}_bytes"
    return entry_points.builtin_function_maker(name, _generate(name, size))


def function(size: int, places: np.ndarray) -> Callable[..., Any]:
    """The built-in function `(result, array)` that fills a new row-major array, and returns that.

    Args:
        size: the bytes of an element.
        places: int64 offsets in bytes from the array's first element, one for each element of the result; negative
            ones stand for 0. It has to live as long as the function.
    """
    return _maker(size)(np.array([places.size, places.ctypes.data, *entry_points.block_fields()], np.int64))


__all__ = ["MOST", "RUNS", "SIZES", "function", "runs"]
