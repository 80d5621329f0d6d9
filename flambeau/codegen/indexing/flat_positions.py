"""Gathers and scatters of few elements in one call: built-in functions over tables of flat positions.

The shapes of an array and of an index determine a *base* and a *pick* for each element that is moved: it is at
`base[i] + index[pick[i]] · step` in the array. A function checks all indices before it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points, numpy_abi
from ..llvm import kernel_entry
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I32, I64, POINTER, as_opaque_pointer, at, i64, local, loop, word

#: the most elements that are moved
MOST = 4096
#: what happens to an element: it is picked; replaced by one of the source, or by a number; one of the source is added
GATHER, REPLACE, FILL, ADD = "gather", "replace", "fill", "add"

#: words of a block: elements that are moved, the size of the indexed dimension, its step, the addresses of the two
#: tables, the array's elements, the bits of a number; the fields of `entry_points`
_COUNT, _SIZE, _STEP, _BASES, _PICKS, _ELEMENTS, _NUMBER, _ADDRESSES = range(8)
_FIELDS = entry_points.field_indices(_ADDRESSES)
_BUILTIN = ir.FunctionType(POINTER, [POINTER, POINTER, I64])
_VOID = ir.VoidType()
#: by the dtype's character; integers are only moved
_TYPES: dict[str, ir.Type] = {"f": ir.FloatType(), "d": ir.DoubleType(), "l": I64}


def _generate(name: str, action: str, char: str, wraps: bool) -> str:
    """The function `(None, result, array, index[, source])`: the result; None where an index is out of range.

    Args:
        char: the elements' type.
        wraps: whether negative indices count from the end.
    """
    module = ir.Module(name)
    function, b = kernel_entry.begin(module, name, _BUILTIN)
    self, arguments, _ = function.args
    block = b.load(at(b, self, numpy_abi.DATA), typ=POINTER)
    type_ = _TYPES[char]

    def python(field: str, result: Any, *types: Any) -> FunctionPointer:
        return FunctionPointer(b.inttoptr(word(b, block, _FIELDS[field]), POINTER), ir.FunctionType(result, types))

    def argument(index: int) -> Any:
        return b.load(b.gep(arguments, [i64(index)], source_etype=POINTER), typ=POINTER)

    def data(array: Any) -> Any:
        """The address of an array's data; anything else is refused."""
        is_array = b.icmp_unsigned("==", b.ptrtoint(b.load(at(b, array, entry_points.TYPE), typ=POINTER), I64),
                                   word(b, block, _FIELDS["ndarray"]))
        with b.if_then(b.not_(is_array), likely=False):
            b.call(python("raise_error", _VOID, I64, I64),
                   [word(b, block, _FIELDS["error"]), word(b, block, _FIELDS["text"])])
            b.ret(ir.Constant(POINTER, None))
        return b.load(at(b, array, numpy_abi.DATA), typ=POINTER)

    def element(base: Any, index: Any) -> Any:
        return b.gep(base, [index], source_etype=type_)

    def leave(value: Any) -> None:
        b.call(python("refer", _VOID, POINTER), [value])
        b.ret(value)

    result = argument(1)
    out, x, index = data(result), data(argument(2)), data(argument(3))
    count, size, step = word(b, block, _COUNT), word(b, block, _SIZE), word(b, block, _STEP)
    bases, picks = (b.inttoptr(word(b, block, each), POINTER) for each in (_BASES, _PICKS))
    places = as_opaque_pointer(b, local(b, I64, MOST))
    with loop(b, i64(0), count) as i:
        position = word(b, index, word(b, picks, i))
        if wraps:
            position = b.select(b.icmp_signed("<", position, i64(0)), b.add(position, size), position)
        with b.if_then(b.icmp_unsigned(">=", position, size), likely=False):  # negative ones are large
            leave(argument(0))
        b.store(b.add(word(b, bases, i), b.mul(position, step)), b.gep(places, [i], source_etype=I64))
    if action == GATHER:
        with loop(b, i64(0), count) as i:
            b.store(b.load(element(x, word(b, places, i)), typ=type_, align=1), element(out, i), align=1)
        leave(result)
        return str(module)
    with loop(b, i64(0), word(b, block, _ELEMENTS)) as i:
        b.store(b.load(element(x, i), typ=type_, align=1), element(out, i), align=1)
    source = None if action == FILL else data(argument(4))
    number = word(b, block, _NUMBER)
    if char != "l":
        number = b.bitcast(number if char == "d" else b.trunc(number, I32), type_)
    with loop(b, i64(0), count) as i:
        place = element(out, word(b, places, i))
        value = number if source is None else b.load(element(source, i), typ=type_, align=1)
        if action == ADD:
            value = b.fadd(b.load(place, typ=type_, align=1), value)
        b.store(value, place, align=1)
    leave(result)
    return str(module)


@cache
def _maker(action: str, char: str, wraps: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"{action}_{char}{'_wrapped' * wraps}"
    return entry_points.builtin_function_maker(name, _generate(name, action, char, wraps))


def function(action: str, dtype: np.dtype, bases: np.ndarray, picks: np.ndarray, size: int, step: int, elements: int,
             number: float = 0.0, wraps: bool = False) -> tuple[Callable[..., Any], Any]:
    """The built-in function `(None, result, array, index[, source])`, and what has to live as long.

    All arrays are row-major, the index has int64 numbers. It returns None, and has written nothing, where an index is
    out of range; else the result.

    Args:
        bases, picks: int64 numbers of each element that is moved, at most `MOST`.
        size, step: of the indexed dimension.
        elements: of the array.
        number: what FILL writes.
        wraps: whether negative indices count from the end.
    """
    bits = np.array(number, dtype).view(np.int32 if dtype.char == "f" else np.int64).item()
    block = np.array([bases.size, size, step, bases.ctypes.data, picks.ctypes.data, elements, bits,
                      *entry_points.block_fields()], np.int64)
    return _maker(action, dtype.char, wraps)(block), (bases, picks)


__all__ = ["ADD", "FILL", "GATHER", "MOST", "REPLACE", "function"]
