"""Packing of matmul's left operand A whose columns are contiguous, into the order in which register blocks read it.

A register block reads one element of A per row for each k. If A's columns are contiguous, these elements are contiguous
but a column apart from k to k + 1, each on another cache line and often on another page. The packed copy consists of
bands (A's micro-panels): a block's rows, with all elements of one k after those of the k before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm.loop_nests import I64, POINTER, at, i64, loop
from ..llvm.lowering import memory_type
from .microkernel import VOID, register_blocking

#: bands, matrix, k stride in bytes, rows, K
PACK_LEFT = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, I64])
#: values of k copied together: with a block's rows they fill cache lines
_TOGETHER = 4


def emit_pack_left(module: ir.Module, dtype: np.dtype) -> ir.Function:
    """Emit the function (`PACK_LEFT`) that packs rows into bands; a last band of fewer rows has the full size."""
    kind, size, high = memory_type(dtype), dtype.itemsize, register_blocking(dtype).rows[0]
    vector = ir.VectorType(kind, high)
    function = ir.Function(module, PACK_LEFT, "pack.left")
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    target, source, by_k, rows, depth = function.args
    full_rows = builder.sub(rows, builder.srem(rows, i64(high)))
    by_row = builder.mul(depth, i64(size))  # bytes of a band, per row

    def place(row: Any, k: Any) -> Any:
        return at(builder, target, builder.add(builder.mul(row, by_row), builder.mul(k, i64(high * size))))

    def bands(first: Any, count: int) -> None:
        ks = [builder.add(first, i64(i)) for i in range(count)]
        with loop(builder, i64(0), full_rows, high) as row:
            column = at(builder, source, builder.mul(row, i64(size)))
            values = [builder.load(at(builder, column, builder.mul(k, by_k)), typ=vector, align=size) for k in ks]
            for k, each in zip(ks, values, strict=True):
                builder.store(each, place(row, k), align=size)

    together = builder.sub(depth, builder.srem(depth, i64(_TOGETHER)))
    with loop(builder, i64(0), together, _TOGETHER) as k:
        bands(k, _TOGETHER)
    with loop(builder, together, depth) as k:
        bands(k, 1)
    with loop(builder, i64(0), depth) as k, loop(builder, full_rows, rows) as row:
        one = builder.load(at(builder, source, builder.add(builder.mul(row, i64(size)), builder.mul(k, by_k))),
                           typ=kind, align=size)
        inside = builder.mul(builder.sub(row, full_rows), i64(size))
        builder.store(one, at(builder, place(full_rows, k), inside), align=size)
    builder.ret_void()
    return function


__all__ = ["emit_pack_left"]
