"""Attention of one query in one call: generated tokens attend to ever more keys, so that nothing is planned by shape.

The scores of four keys are computed at a time, their exponentials in vectors, and the sums over values in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points, numpy_abi, target
from ..llvm.array_function import ArrayFunction
from ..llvm.loop_nests import I32, POINTER, at, first_lanes, i64, loop, smaller, word
from ..llvm.lowering import constant, intrinsic, splat
from ..math.functions import emit
from ..matmul.dot import horizontal_sums
from ..matmul.microkernel import fmuladd

#: keys whose scores are computed together, and vectors of values whose sums are
_KEYS, _VECTORS = 4, 4
#: elements of memory for scores beyond the number of keys
PADDING = 64
_NAME = "attention_of_rows"
_SINGLE = ir.FloatType()


def _generate() -> str:
    """The function `(out, scores, query, key, value, scale)`: out."""
    f = ArrayFunction(_NAME, 0, 6, 0)
    b, (out, scores, query, key, value, scale) = f.b, f.data
    lanes = max(4, target.host().vector_bits // 32)
    vector, few = ir.VectorType(_SINGLE, lanes), ir.VectorType(_SINGLE, _KEYS)
    lowest = ir.Constant(_SINGLE, float("-inf"))

    def layout(number: int, field: int) -> list[Any]:
        table = b.load(at(b, f.argument(number), field), typ=POINTER)
        return [word(b, table, i) for i in range(4)]

    batches, heads, keys, width = layout(3, numpy_abi.SHAPE)
    depth = layout(4, numpy_abi.SHAPE)[3]
    steps = {number: layout(number, numpy_abi.STRIDES) for number in (0, 2, 3, 4)}
    factor = b.load(scale, typ=_SINGLE, align=4)
    last_key, whole = b.sub(keys, i64(1)), b.sub(width, b.srem(width, i64(lanes)))
    rest = first_lanes(b, b.sub(width, whole), lanes)
    everything = b.sub(depth, b.srem(depth, i64(_VECTORS * lanes)))

    def element(base: Any, index: Any) -> Any:
        return b.gep(base, [index], source_etype=_SINGLE)

    def masked(place: Any, mask: Any) -> Any:
        return intrinsic(b, "masked.load", vector, [place, ir.Constant(I32, 4), mask, constant(0, vector)],
                         [vector, POINTER])

    sums = [f.variable(vector, constant(0, vector)) for _ in range(max(_KEYS, 2 * _VECTORS))]
    largest = f.variable(few, splat(b, lowest, _KEYS))
    total = f.variable(vector, constant(0, vector))

    def add(memory: Any, x: Any, y: Any) -> None:
        b.store(fmuladd(b, x, y, b.load(memory, typ=vector)), memory)

    def clear(count: int) -> None:
        for each in sums[:count]:
            b.store(constant(0, vector), each)

    def of_head(base: Any, number: int, batch: Any, head: Any) -> Any:
        return at(b, base, b.add(b.mul(batch, steps[number][0]), b.mul(head, steps[number][1])))

    def score(row: Any, first: Any, table: Any) -> None:
        with loop(b, i64(0), keys, _KEYS) as j:
            rows = [at(b, first, b.mul(smaller(b, b.add(j, i64(i)), last_key), steps[3][2])) for i in range(_KEYS)]
            clear(_KEYS)
            with loop(b, i64(0), whole, lanes) as d:
                left = b.load(element(row, d), typ=vector, align=4)
                for each, memory in zip(rows, sums, strict=False):
                    add(memory, left, b.load(element(each, d), typ=vector, align=4))
            with b.if_then(b.icmp_signed("<", whole, width)):
                left = masked(element(row, whole), rest)
                for each, memory in zip(rows, sums, strict=False):
                    add(memory, left, masked(element(each, whole), rest))
            found = b.fmul(horizontal_sums(b, [b.load(each, typ=vector) for each in sums[:_KEYS]]),
                           splat(b, factor, _KEYS))
            b.store(found, element(table, j), align=4)
            before = b.load(largest, typ=few)
            b.store(b.select(b.fcmp_ordered(">", found, before), found, before), largest)

    def weigh(table: Any) -> None:
        top: Any = lowest
        maxima = b.load(largest, typ=few)
        for i in range(_KEYS):
            each = b.extract_element(maxima, ir.Constant(I32, i))
            top = b.select(b.fcmp_ordered(">", each, top), each, top)
        top = splat(b, b.select(b.fcmp_ordered("==", top, lowest), ir.Constant(_SINGLE, 0.0), top), lanes)
        b.store(constant(0, vector), total)
        with loop(b, i64(0), keys, lanes) as j:
            place = element(table, j)
            weights = emit("exp", b, [b.fsub(b.load(place, typ=vector, align=4), top)], vector)
            weights = b.select(first_lanes(b, b.sub(keys, j), lanes), weights, constant(0, vector))
            b.store(weights, place, align=4)
            b.store(b.fadd(b.load(total, typ=vector), weights), total)

    def mix(table: Any, first: Any, result: Any, start: Any, count: int, mask: Any) -> None:
        """The sums of `count` vectors of values; two keys at a time, the second one's in sums of its own."""
        clear(2 * count)

        def add_row(j: Any, memories: list[Any]) -> None:
            weight = splat(b, b.load(element(table, j), typ=_SINGLE, align=4), lanes)
            row = at(b, first, b.mul(j, steps[4][2]))
            for k, memory in enumerate(memories):
                place = element(row, b.add(start, i64(k * lanes)))
                add(memory, weight, b.load(place, typ=vector, align=4) if mask is None else masked(place, mask))

        even = b.and_(keys, i64(-2))
        with loop(b, i64(0), even, 2) as j:
            add_row(j, sums[:count])
            add_row(b.add(j, i64(1)), sums[count:2 * count])
        with loop(b, even, keys) as j:
            add_row(j, sums[:count])
        whole_total = horizontal_sums(b, [b.load(total, typ=vector)])
        divisor = b.extract_element(whole_total, ir.Constant(I32, 0))
        divisor = b.select(b.fcmp_ordered("==", divisor, ir.Constant(_SINGLE, 0.0)), ir.Constant(_SINGLE, 1.0), divisor)
        for k in range(count):
            mean = b.fdiv(b.fadd(b.load(sums[k], typ=vector), b.load(sums[count + k], typ=vector)),
                          splat(b, divisor, lanes))
            place = element(result, b.add(start, i64(k * lanes)))
            if mask is None:
                b.store(mean, place, align=4)
            else:
                intrinsic(b, "masked.store", ir.VoidType(), [mean, place, ir.Constant(I32, 4), mask], [vector, POINTER])

    with loop(b, i64(0), batches) as batch, loop(b, i64(0), heads) as head:
        row, first_key, first_value, result = (of_head(base, number, batch, head) for base, number in (
            (query, 2), (key, 3), (value, 4), (out, 0)))
        b.store(splat(b, lowest, _KEYS), largest)
        score(row, first_key, scores)
        weigh(scores)
        with loop(b, i64(0), everything, _VECTORS * lanes) as start:
            mix(scores, first_value, result, start, _VECTORS, None)
        with loop(b, everything, depth, lanes) as start:
            mix(scores, first_value, result, start, 1, first_lanes(b, b.sub(depth, start), lanes))
    f.leave(0)
    return str(f.module)


@cache
def function() -> Callable[..., Any]:
    """The built-in function `(out, scores, query, key, value, scale)` of float32 arrays: out.

    The queries and results are (batches, heads, 1, width), the keys and values (batches, heads, keys, width), at least
    one, with contiguous rows; their widths may differ. `scores` has memory for each key and `PADDING` more.
    """
    block = np.array(entry_points.block_fields(), np.int64)
    return entry_points.builtin_function_maker(_NAME, _generate())(block)


__all__ = ["PADDING", "function"]
