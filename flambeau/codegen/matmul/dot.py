"""Products with few rows whose right operand's columns lie together: K runs along the vectors, nothing is packed.

A block has a few rows of A and columns of B; each of its sums is a vector, whose elements are added up at the end.
The plan is that of `matmul_code`; every result goes through an epilogue.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm.loop_nests import I32, I64, POINTER, at, i64, loop, smaller
from ..llvm.lowering import stored
from .code import memory, regions
from .microkernel import FINISH, VOID, Called, carried, fused, spread, tiling
from .plan import Plan

#: columns whose sums are finished together, and rows of A at most
BLOCK, ROWS = 64, 64
#: tile, bytes between its rows, A, bytes between its rows, B, bytes between its columns, length of K, rows, columns
_SUMS = ir.FunctionType(VOID, [POINTER, I64, POINTER, I64, POINTER, I64, I64, I64, I64])


def generate(dtype: np.dtype) -> str:
    """The code: `body` computes regions of a product."""
    module = ir.Module("dot")
    shape, size = tiling(dtype), dtype.itemsize
    # no more columns than a vector has elements
    single, several = (_emit_sums(module, dtype, high, min(wide, shape.lanes)) for high, wide in ((1, 8), (4, 4)))
    pitch = i64(BLOCK * size)
    with regions(module, "body") as (builder, p, region):
        tile = memory(builder, ROWS * BLOCK * size)
        finish = builder.inttoptr(p[Plan.FINISH], POINTER)
        start = builder.mul(region.start, i64(shape.lanes))
        stop = smaller(builder, builder.add(start, builder.mul(region.vectors, i64(shape.lanes))), p[Plan.N])
        with loop(builder, start, stop, BLOCK) as column:
            columns = smaller(builder, i64(BLOCK), builder.sub(stop, column))
            right = at(builder, region.b, builder.mul(column, p[Plan.B_COLUMN]))
            with builder.if_else(builder.icmp_signed("==", region.rows, i64(1))) as (one, many):
                for block, sums in ((one, single), (many, several)):
                    with block:
                        builder.call(sums, [tile, pitch, region.a, p[Plan.A_ROW], right, p[Plan.B_COLUMN], p[Plan.K],
                                            region.rows, columns])
            builder.call(Called(finish, FINISH), [tile, pitch, region.bases, region.strides, region.row, column,
                                                  region.rows, columns])
    return str(module)


def _emit_sums(module: ir.Module, dtype: np.dtype, high: int, wide: int) -> ir.Function:
    """The function that computes sums over K, `high` rows and `wide` columns at a time."""
    shape, size, kind = tiling(dtype), dtype.itemsize, stored(dtype)
    lanes = shape.lanes
    function = ir.Function(module, _SUMS, f"sums.{high}.{wide}")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    tile, pitch, a, by_row, b, by_column, depth, rows, columns = function.args
    vector = ir.VectorType(kind, lanes)
    zero = ir.Constant(vector, None)
    whole = builder.sdiv(depth, i64(lanes))
    rest = builder.srem(depth, i64(lanes))
    # the last vector of K ends with it: the lanes that were summed already are left out
    limit = builder.trunc(builder.sub(i64(lanes), rest), I32)
    number = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
    kept = builder.icmp_signed(">=", number, spread(builder, limit, lanes))
    last_row, last_column = builder.sub(rows, i64(1)), builder.sub(columns, i64(1))

    def load(address: Any, masked: bool) -> Any:
        value = builder.load(address, typ=vector, align=size)
        return builder.select(kept, value, zero) if masked else value

    def products(left: list[Any], right: list[Any], sums: list[Any], masked: bool) -> list[Any]:
        b_values = [load(each, masked) for each in right]
        found = []
        for i, each in enumerate(left):
            value = load(each, masked)
            found += [fused(builder, value, other, sums[i * wide + j]) for j, other in enumerate(b_values)]
        return found

    with loop(builder, i64(0), columns, wide) as column, loop(builder, i64(0), rows, high) as row:
        across = [smaller(builder, builder.add(column, i64(j)), last_column) for j in range(wide)]
        down = [smaller(builder, builder.add(row, i64(i)), last_row) for i in range(high)]
        left = [at(builder, a, builder.mul(i, by_row)) for i in down]
        right = [at(builder, b, builder.mul(j, by_column)) for j in across]
        with carried(builder, whole, [*[zero] * (high * wide), i64(0)]) as (sums, following):
            *before, offset = sums
            following += products([at(builder, each, offset) for each in left],
                                  [at(builder, each, offset) for each in right], before, False)
            following.append(builder.add(offset, i64(lanes * size)))
        totals = sums[:-1]
        before, tail, done = builder.block, builder.append_basic_block("tail"), builder.append_basic_block("summed")
        builder.cbranch(builder.icmp_signed(">", rest, i64(0)), tail, done)
        builder.position_at_end(tail)
        offset = builder.mul(builder.sub(depth, i64(lanes)), i64(size))
        ended = products([at(builder, each, offset) for each in left], [at(builder, each, offset) for each in right],
                         totals, True)
        builder.branch(done)
        builder.position_at_end(done)
        merged = [builder.phi(vector) for _ in totals]
        for phi, x, y in zip(merged, totals, ended, strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, tail)
        corner = at(builder, tile, builder.mul(column, i64(size)))
        # sums beyond the last column are written, too: the tile's rows are whole vectors, and nobody reads them
        for i, each in enumerate(down):
            result = _added_up(builder, merged[i * wide:(i + 1) * wide])
            builder.store(result, at(builder, corner, builder.mul(each, pitch)), align=size)
    builder.ret_void()
    return function


def _added_up(builder: ir.IRBuilder, vectors: list[Any]) -> Any:
    """Each vector's elements added up, the sums side by side in one vector."""
    def pairs(x: Any, y: Any, length: int) -> Any:
        even, odd = (builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, length // 2),
                                                              list(range(start, length, 2)))) for start in (0, 1))
        return builder.fadd(even, odd)

    count = len(vectors)
    while len(vectors) > 1:
        vectors = [pairs(x, y, 2 * x.type.count) for x, y in zip(vectors[::2], vectors[1::2], strict=True)]
    result = vectors[0]
    while result.type.count > count:
        result = pairs(result, result, result.type.count)
    return result
