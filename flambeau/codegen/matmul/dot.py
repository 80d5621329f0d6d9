"""Code generation for dot-product matmul: A has few rows, B's columns are contiguous, K runs along the vectors.

A block has a few rows of A and columns of B. Each accumulator is a vector, which is reduced horizontally at the end.
Nothing is packed. The plan is that of `code`; every result passes through an epilogue.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import target
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I32, I64, POINTER, at, i64, inside_array, loop, shared_base, smaller
from ..llvm.lowering import memory_type, splat
from .code import region_loop, stack_buffer
from .microkernel import EPILOGUE, VOID, fmuladd, register_blocking, stepwise_loop
from .plan import Plan

#: columns whose sums are stored in a tile before the epilogue runs, and most rows of A
BLOCK, ROWS = 64, 64
#: bytes of B from which it is read from memory: then by several long sequences of addresses, which a core reads faster
#: than several short ones that follow each other
FAR_BYTES = 1 << 21
#: vectors of K that share the computation of addresses in WebAssembly, whose loads add a constant only
WASM_STEPS = 4
#: tile, its row pitch in bytes, A, its row stride, B, its column stride, K, rows, columns
_SUMS = ir.FunctionType(VOID, [POINTER, I64, POINTER, I64, POINTER, I64, I64, I64, I64])


def generate(dtype: np.dtype) -> str:
    """Return the module: `body` computes regions of a product."""
    module = ir.Module("dot")
    shape, size = register_blocking(dtype), dtype.itemsize
    # at most as many columns as a vector has lanes
    functions = [[_emit_sums(module, dtype, high, min(wide, shape.lanes), spread) for spread in (False, True)]
                 for high, wide in _blocks()]
    pitch = i64(BLOCK * size)
    with region_loop(module, "body") as (builder, p, region):
        tile = stack_buffer(builder, ROWS * BLOCK * size)
        epilogue = builder.inttoptr(p[Plan.EPILOGUE], POINTER)
        start = builder.mul(region.start, i64(shape.lanes))
        is_far = builder.icmp_signed(">", builder.mul(builder.mul(p[Plan.N], p[Plan.K]), i64(size)), i64(FAR_BYTES))
        stop = smaller(builder, builder.add(start, builder.mul(region.vectors, i64(shape.lanes))), p[Plan.N])
        with loop(builder, start, stop, BLOCK) as column:
            columns = smaller(builder, i64(BLOCK), builder.sub(stop, column))
            spreads = builder.and_(is_far, builder.icmp_signed("==", columns, i64(BLOCK)))
            right = at(builder, region.b, builder.mul(column, p[Plan.B_COLUMN]))
            arguments = [tile, pitch, region.a, p[Plan.A_ROW], right, p[Plan.B_COLUMN], p[Plan.K], region.rows, columns]
            summed = builder.append_basic_block("summed")
            choice = builder.switch(_choice(builder, len(functions), region.rows, spreads), summed)
            for number, sums in enumerate(each for pair in functions for each in pair):
                block = builder.append_basic_block("summing")
                choice.add_case(i64(number), block)
                builder.position_at_end(block)
                builder.call(sums, arguments)
                builder.branch(summed)
            builder.position_at_end(summed)
            builder.call(FunctionPointer(epilogue, EPILOGUE), [
                tile, pitch, region.bases, region.strides, region.row, column, region.rows, columns])
    return str(module)


def _blocks() -> tuple[tuple[int, int], ...]:
    """Rows and columns of blocks, the first for one row: their sums and what a step loads fit the registers."""
    host = target.host()
    if host.triple.startswith("x86_64") and host.vector_bits < 512:  # 16 registers
        return (1, 8), (2, 4), (3, 4)
    return (1, 8), (4, 4)


def _choice(builder: ir.IRBuilder, kinds: int, rows: Any, spreads: Any) -> Any:
    """The number of the function for so many rows; odd ones spread their columns."""
    def is_any(*counts: int) -> Any:
        found = [builder.icmp_signed("==", rows, i64(count)) for count in counts]
        return found[0] if len(found) == 1 else builder.or_(*found)

    kind = i64(1)
    if kinds > 2:  # blocks of three rows are faster than those of two, unless they compute half as many rows again
        kind = builder.select(is_any(2, 4), i64(1), i64(2))
    kind = builder.select(is_any(1), i64(0), kind)
    return builder.add(builder.shl(kind, i64(1)), builder.zext(spreads, I64))


def _emit_sums(module: ir.Module, dtype: np.dtype, high: int, wide: int, spread: bool) -> ir.Function:
    """Emit the function that accumulates over K, `high` rows and `wide` columns at a time.

    Args:
        spread: whether these columns are spread over the block, of `BLOCK` columns, instead of being adjacent.
    """
    shape, size, kind = register_blocking(dtype), dtype.itemsize, memory_type(dtype)
    lanes = shape.lanes
    function = ir.Function(module, _SUMS, f"sums.{high}.{wide}.{'spread' if spread else 'adjacent'}")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    tile, pitch, a, by_row, b, by_column, depth, rows, columns = function.args
    vector = ir.VectorType(kind, lanes)
    zero = ir.Constant(vector, None)
    full_vectors = builder.sdiv(depth, i64(lanes))
    rest = builder.srem(depth, i64(lanes))
    # loop tail: the last vector ends with K, and lanes that were accumulated already are masked out
    limit = builder.trunc(builder.sub(i64(lanes), rest), I32)
    number = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
    remaining = builder.icmp_signed(">=", number, splat(builder, limit, lanes))
    last_row, last_column = builder.sub(rows, i64(1)), builder.sub(columns, i64(1))

    def load(address: Any, masked: bool) -> Any:
        value = builder.load(address, typ=vector, align=size)
        return builder.select(remaining, value, zero) if masked else value

    def products(left: list[Any], right: list[Any], sums: list[Any], masked: bool) -> list[Any]:
        a_values, updated = [load(each, masked) for each in left], list(sums)
        for j, each in enumerate(right):
            value = load(each, masked)
            for i, other in enumerate(a_values):
                updated[i * wide + j] = fmuladd(builder, other, value, sums[i * wide + j])
        return updated

    step = BLOCK // wide if spread else 1
    first_columns = (i64(0), i64(step)) if spread else (i64(0), columns, wide)
    with loop(builder, *first_columns) as column, loop(builder, i64(0), rows, high) as row:
        across = [smaller(builder, builder.add(column, i64(j * step)), last_column) for j in range(wide)]
        down = [smaller(builder, builder.add(row, i64(i)), last_row) for i in range(high)]
        left = [at(builder, a, builder.mul(i, by_row)) for i in down]
        right = [at(builder, b, builder.mul(j, by_column)) for j in across]

        def accumulate(values: list[Any], i: int, left: list[Any] = left, right: list[Any] = right) -> list[Any]:
            *before, offset = values
            if not i:
                places[:] = [[shared_base(builder, at(builder, each, offset)) for each in side]
                             for side in (left, right)]
            of_left, of_right = ([inside_array(builder, each, i * lanes * size) for each in side] for side in places)
            return products(of_left, of_right, before, False)

        places: list[list[Any]] = []
        unroll = WASM_STEPS if target.host().is_wasm else 1
        totals = stepwise_loop(builder, full_vectors, [*[zero] * (high * wide), i64(0)], unroll, accumulate,
                               lambda offset: builder.add(offset, i64(unroll * lanes * size)))
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
        # sums beyond the last column are stored, too: the tile's rows are whole vectors, and the epilogue ignores them
        for i, each in enumerate(down):
            result = horizontal_sums(builder, merged[i * wide:(i + 1) * wide])
            place = at(builder, corner, builder.mul(each, pitch))
            if not spread:
                builder.store(result, place, align=size)
                continue
            for j in range(wide):
                one = builder.extract_element(result, ir.Constant(I32, j))
                builder.store(one, at(builder, place, j * step * size), align=size)
    builder.ret_void()
    return function


def horizontal_sums(builder: ir.IRBuilder, vectors: list[Any]) -> Any:
    """Reduce each vector horizontally; return the sums as the lanes of one vector."""
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
