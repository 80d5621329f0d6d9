"""Gathers and scatters of few elements in one call: built-in functions over tables of flat positions.

The shapes of an array and of indices determine a *base* and a *pick* for each element that is moved: it is at
`base[i] + sum(index[pick[i]] · step)` in the array. A function that finds an index out of range leaves its result
unfinished.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I1, I8, I32, I64, POINTER, i64, loop, word
from ..llvm.lowering import intrinsic

#: the most elements that are moved
MOST = 4096
#: what happens to an element: it is picked; replaced by one of the source, or by a number; one of the source is added
GATHER, REPLACE, FILL, ADD = "gather", "replace", "fill", "add"

#: words of a block: elements that are moved, the addresses of the two tables, the array's elements, the bits of a
#: number; then the size of the indexed dimension and its step, of each index; the fields of `entry_points`
_COUNT, _BASES, _PICKS, _ELEMENTS, _NUMBER, _SIZES = range(6)


def _generate(name: str, action: str, char: str, wraps: bool, indices: int, zeros: bool, in_order: bool) -> str:
    """The function `(None, result, array, *indices[, source])`: the result; None where an index is out of range.

    Args:
        char: the elements' type.
        wraps: whether negative indices count from the end.
        indices: how many there are.
        zeros: whether the array is zeros, and no argument.
        in_order: whether each element's index is that of its number.
    """
    takes_source = action in (REPLACE, ADD)
    f = ArrayFunction(name, _SIZES + 2 * indices, 1 + (not zeros) + indices + takes_source)
    b, type_ = f.b, TYPES[char]
    out, first = f.data[0], 1 + (not zeros)

    def element(base: Any, index: Any) -> Any:
        return b.gep(base, [index], source_etype=type_)

    if zeros:
        bytes_ = b.mul(f.word(_ELEMENTS), i64(4 if char == "f" else 8))
        intrinsic(b, "memset", ir.VoidType(), [out, ir.Constant(I8, 0), bytes_, ir.Constant(I1, 0)],
                  [POINTER, I64])
    elif action != GATHER:
        bytes_ = b.mul(f.word(_ELEMENTS), i64(4 if char == "f" else 8))
        intrinsic(b, "memcpy", ir.VoidType(), [out, f.data[1], bytes_, ir.Constant(I1, 0)], [POINTER, POINTER, I64])
    number = f.word(_NUMBER)
    if char != "l":
        number = b.bitcast(number if char == "d" else b.trunc(number, I32), type_)
    bases, picks = (b.inttoptr(f.word(each), POINTER) for each in (_BASES, _PICKS))
    sizes = [(f.word(_SIZES + 2 * each), f.word(_SIZES + 2 * each + 1)) for each in range(indices)]
    with loop(b, i64(0), f.word(_COUNT)) as i:
        place, pick = word(b, bases, i), i if in_order else word(b, picks, i)
        for (size, step), index in zip(sizes, f.data[first:first + indices], strict=True):
            position = word(b, index, pick)
            if wraps:
                position = b.select(b.icmp_signed("<", position, i64(0)), b.add(position, size), position)
            with b.if_then(b.icmp_unsigned(">=", position, size), likely=False):  # negative ones are large
                f.leave(0)
            place = b.add(place, b.mul(position, step))
        if action == GATHER:
            b.store(b.load(element(f.data[1], place), typ=type_, align=1), element(out, i), align=1)
        else:
            value = b.load(element(f.data[-1], i), typ=type_, align=1) if takes_source else number
            if action == ADD:
                value = b.fadd(b.load(element(out, place), typ=type_, align=1), value)
            b.store(value, element(out, place), align=1)
    f.leave(1)
    return str(f.module)


@cache
def _maker(action: str, char: str, wraps: bool, indices: int, zeros: bool,
           in_order: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"{action}_{char}_{indices}{'_wrapped' * wraps}{'_into_zeros' * zeros}{'_in_order' * in_order}"
    return entry_points.builtin_function_maker(name, _generate(name, action, char, wraps, indices, zeros, in_order))


def function(action: str, dtype: np.dtype, bases: np.ndarray, picks: np.ndarray, sizes: Sequence[tuple[int, int]],
             elements: int, number: float = 0.0, wraps: bool = False,
             zeros: bool = False) -> tuple[Callable[..., Any], Any]:
    """The built-in function `(None, result, array, *indices[, source])`, and what has to live as long.

    All arrays are row-major, the indices have int64 numbers. It returns None, and the result is unfinished, where an
    index is out of range; else the result.

    Args:
        bases, picks: int64 numbers of each element that is moved, at most `MOST`.
        sizes: the size of the dimension and its step, of each index.
        elements: of the array.
        number: what FILL writes.
        wraps: whether negative indices count from the end.
        zeros: whether the array is zeros, and no argument.
    """
    bits = np.array(number, dtype).view(np.int32 if dtype.char == "f" else np.int64).item()
    block = np.array([bases.size, bases.ctypes.data, picks.ctypes.data, elements, bits,
                      *[each for pair in sizes for each in pair], *entry_points.block_fields()], np.int64)
    in_order = bool((picks == np.arange(picks.size)).all())
    return _maker(action, dtype.char, wraps, len(sizes), zeros, in_order)(block), (bases, picks)


__all__ = ["ADD", "FILL", "GATHER", "MOST", "REPLACE", "function"]
