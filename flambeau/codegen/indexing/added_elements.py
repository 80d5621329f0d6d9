"""Sums of few elements at given places in one call, in the order of the elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import POINTER, i64, loop, word

#: words of a block: elements of the result, elements that are added, the address of the table of places
_SIZE, _COUNT, _PLACES, _WORDS = range(4)


def _generate(name: str, char: str) -> str:
    """The function `(result, array)`: the result, zeros to which elements are added, but for negative places."""
    f, type_ = ArrayFunction(name, _WORDS, 2, 0), TYPES[char]
    b, (out, x) = f.b, f.data
    with loop(b, i64(0), f.word(_SIZE)) as i:
        b.store(ir.Constant(type_, 0.0), b.gep(out, [i], source_etype=type_), align=1)
    places = b.inttoptr(f.word(_PLACES), POINTER)
    with loop(b, i64(0), f.word(_COUNT)) as i:
        place = word(b, places, i)
        with b.if_then(b.icmp_signed(">=", place, i64(0))):
            target = b.gep(out, [place], source_etype=type_)
            value = b.load(b.gep(x, [i], source_etype=type_), typ=type_, align=1)
            b.store(b.fadd(b.load(target, typ=type_, align=1), value), target, align=1)
    f.leave(0)
    return str(f.module)


@cache
def _maker(char: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    return entry_points.builtin_function_maker(f"add_elements_{char}", _generate(f"add_elements_{char}", char))


def function(dtype: np.dtype, size: int, places: np.ndarray) -> Callable[..., Any]:
    """The built-in function `(result, array)` of row-major arrays of a dtype, float32 or float64: the result.

    Args:
        size: elements of the result.
        places: int64, for each element of the array its place in the result; negative: nowhere. It has to live as long.
    """
    return _maker(dtype.char)(np.array([size, places.size, places.ctypes.data, *entry_points.block_fields()], np.int64))


__all__ = ["function"]
