"""Joins of few elements in one call: a built-in function that copies blocks of arrays one after the other.

A row-major result of a concatenation consists of *rounds*; in each round every array gives one block. An array's block
is contiguous, and the blocks of one array are a constant number of bytes apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points, numpy_abi
from ..llvm import kernel_entry
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I1, I64, POINTER, as_opaque_pointer, at, i64, local, loop, word
from ..llvm.lowering import intrinsic

#: words of a block: rounds and arrays; the fields of `entry_points`; of each array the bytes of its block, and those
#: from one of its blocks to the next
_ROUNDS, _COUNT, _ADDRESSES = range(3)
_FIELDS = entry_points.field_indices(_ADDRESSES)
_SIZES = _ADDRESSES + entry_points.FIELD_COUNT
_BUILTIN = ir.FunctionType(POINTER, [POINTER, POINTER, I64])
_VOID = ir.VoidType()


def _generate(name: str) -> str:
    """The function `(result, *arrays)`: the result."""
    module = ir.Module(name)
    function, b = kernel_entry.begin(module, name, _BUILTIN)
    self, arguments, given = function.args
    block = b.load(at(b, self, numpy_abi.DATA), typ=POINTER)
    rounds, count = word(b, block, _ROUNDS), word(b, block, _COUNT)

    def python(field: str, result: Any, *types: Any) -> FunctionPointer:
        return FunctionPointer(b.inttoptr(word(b, block, _FIELDS[field]), POINTER), ir.FunctionType(result, types))

    def argument(index: Any) -> Any:
        return b.load(b.gep(arguments, [index], source_etype=POINTER), typ=POINTER)

    def refuse_unless(condition: Any) -> None:
        with b.if_then(b.not_(condition), likely=False):
            b.call(python("raise_error", _VOID, I64, I64),
                   [word(b, block, _FIELDS["error"]), word(b, block, _FIELDS["text"])])
            b.ret(ir.Constant(POINTER, None))

    refuse_unless(b.icmp_signed("==", given, b.add(count, i64(1))))
    with loop(b, i64(0), given) as i:
        refuse_unless(b.icmp_unsigned("==", b.ptrtoint(b.load(at(b, argument(i), entry_points.TYPE), typ=POINTER), I64),
                                      word(b, block, _FIELDS["ndarray"])))
    result = argument(i64(0))
    place = as_opaque_pointer(b, local(b, POINTER))
    b.store(b.load(at(b, result, numpy_abi.DATA), typ=POINTER), place)
    with loop(b, i64(0), rounds) as number, loop(b, i64(0), count) as i:
        sizes = b.add(b.mul(i, i64(2)), i64(_SIZES))
        size, step = word(b, block, sizes), word(b, block, b.add(sizes, i64(1)))
        source = b.load(at(b, argument(b.add(i, i64(1))), numpy_abi.DATA), typ=POINTER)
        here = b.load(place, typ=POINTER)
        intrinsic(b, "memcpy", _VOID, [here, at(b, source, b.mul(number, step)), size, ir.Constant(I1, 0)],
                  [POINTER, POINTER, I64])
        b.store(at(b, here, size), place)
    b.call(python("refer", _VOID, POINTER), [result])
    b.ret(result)
    return str(module)


@cache
def _maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    return entry_points.builtin_function_maker("join_blocks", _generate("join_blocks"))


def function(rounds: int, sizes: Sequence[tuple[int, int]]) -> Callable[..., Any]:
    """The built-in function `(result, *arrays)` that copies blocks into a new row-major array, and returns that.

    Args:
        sizes: of each array, the bytes of its block, and the bytes from one of its blocks to the next.
    """
    block = np.array([rounds, len(sizes), *entry_points.block_fields(), *[n for pair in sizes for n in pair]], np.int64)
    return _maker()(block)


__all__ = ["function"]
