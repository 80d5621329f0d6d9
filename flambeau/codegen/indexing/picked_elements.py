"""Rearrangements of few elements in one call: a built-in function that copies elements from a table of places."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points, numpy_abi
from ..llvm import kernel_entry
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I64, POINTER, as_opaque_pointer, at, i64, local, loop, word

#: the most elements of a result, and the bytes of an element
MOST, SIZES = 4096, (1, 2, 4, 8)

#: words of a block: the number of elements, the address of the table; the fields of `entry_points`
_COUNT, _PLACES, _ADDRESSES = range(3)
_FIELDS = entry_points.field_indices(_ADDRESSES)
_BUILTIN = ir.FunctionType(POINTER, [POINTER, POINTER, I64])
_VOID = ir.VoidType()


def _generate(name: str, size: int) -> str:
    """The function `(result, array)`: the result, whose elements are those at the places; 0 at negative ones."""
    module = ir.Module(name)
    function, b = kernel_entry.begin(module, name, _BUILTIN)
    self, arguments, given = function.args
    block = b.load(at(b, self, numpy_abi.DATA), typ=POINTER)
    type_ = ir.IntType(8 * size)

    def python(field: str, result: Any, *types: Any) -> FunctionPointer:
        return FunctionPointer(b.inttoptr(word(b, block, _FIELDS[field]), POINTER), ir.FunctionType(result, types))

    def refuse_unless(condition: Any) -> None:
        with b.if_then(b.not_(condition), likely=False):
            b.call(python("raise_error", _VOID, I64, I64),
                   [word(b, block, _FIELDS["error"]), word(b, block, _FIELDS["text"])])
            b.ret(ir.Constant(POINTER, None))

    refuse_unless(b.icmp_signed("==", given, i64(2)))
    result, array = (b.load(b.gep(arguments, [i64(i)], source_etype=POINTER), typ=POINTER) for i in (0, 1))
    for each in (result, array):
        refuse_unless(b.icmp_unsigned("==", b.ptrtoint(b.load(at(b, each, entry_points.TYPE), typ=POINTER), I64),
                                      word(b, block, _FIELDS["ndarray"])))
    out, source = (b.load(at(b, each, numpy_abi.DATA), typ=POINTER) for each in (result, array))
    zero = as_opaque_pointer(b, local(b, type_))
    b.store(ir.Constant(type_, 0), zero)
    places = b.inttoptr(word(b, block, _PLACES), POINTER)
    with loop(b, i64(0), word(b, block, _COUNT)) as i:
        place = word(b, places, i)
        element = b.select(b.icmp_signed("<", place, i64(0)), zero, at(b, source, place))
        b.store(b.load(element, typ=type_, align=1), b.gep(out, [i], source_etype=type_), align=1)
    b.call(python("refer", _VOID, POINTER), [result])
    b.ret(result)
    return str(module)


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


__all__ = ["MOST", "SIZES", "function"]
