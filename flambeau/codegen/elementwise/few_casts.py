"""Casts between bfloat16 and float32 of few elements in one call: NumPy lacks the dtype, and takes several passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points, numpy_abi
from ..llvm.array_function import ArrayFunction
from ..llvm.loop_nests import I32, I64, POINTER, at, i64, loop, word
from ..llvm.lowering import constant, to_bfloat16

WIDEN, ROUND = "widen_bfloat16", "round_to_bfloat16"
_LANES = 8
_I16 = ir.IntType(16)


def _elements(f: ArrayFunction, array: Any) -> Any:
    """The number of an array's elements."""
    b = f.b
    rank = b.sext(b.load(at(b, array, numpy_abi.NDIM), typ=I32), I64)
    shape = b.load(at(b, array, numpy_abi.SHAPE), typ=POINTER)
    total = f.variable(I64, i64(1))
    with loop(b, i64(0), rank) as d:
        b.store(b.mul(b.load(total, typ=I64), word(b, shape, d)), total)
    return b.load(total, typ=I64)


def _generate(name: str) -> str:
    """The function `(result, array)`: the result."""
    f = ArrayFunction(name, 0, 2, 0)
    b, (out, x) = f.b, f.data
    count = _elements(f, f.argument(0))
    whole = b.and_(count, i64(-_LANES))

    def convert(index: Any, lanes: int) -> None:
        bits, single = (ir.VectorType(each, lanes) if lanes else each for each in (_I16, ir.FloatType()))
        if name == WIDEN:
            wide = ir.VectorType(I32, lanes) if lanes else I32
            value = b.load(b.gep(x, [index], source_etype=_I16), typ=bits, align=1)
            b.store(b.bitcast(b.shl(b.zext(value, wide), constant(16, wide)), single),
                    b.gep(out, [index], source_etype=ir.FloatType()), align=1)
            return
        value = b.load(b.gep(x, [index], source_etype=ir.FloatType()), typ=single, align=1)
        b.store(to_bfloat16(b, value, lanes), b.gep(out, [index], source_etype=_I16), align=1)

    with loop(b, i64(0), whole, _LANES) as i:
        convert(i, _LANES)
    with loop(b, whole, count) as i:
        convert(i, 0)
    f.leave(0)
    return str(f.module)


@cache
def function(name: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The built-in function `(result, array)` of row-major arrays of equal shape: the result.

    Args:
        name: `WIDEN` for bfloat16 to float32, `ROUND` for float32 to bfloat16 (ties to even).
    """
    block = np.array(entry_points.block_fields(), np.int64)
    return entry_points.builtin_function_maker(name, _generate(name))(block)


__all__ = ["ROUND", "WIDEN", "function"]
