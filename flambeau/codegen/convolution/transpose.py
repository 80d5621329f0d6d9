"""In-register transposes of square blocks, whose rows are in memory or in vectors.

Vectors are treated as 128-bit parts. Elements are interleaved within parts, one instruction per vector and step; the
parts themselves are permuted by the loads, or by further shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm.loop_nests import I32, at
from ..llvm.lowering import memory_type


def columns(builder: ir.IRBuilder, dtype: np.dtype, places: Sequence[Any]) -> list[Any]:
    """The columns of the square block whose rows are at these addresses, as many as a vector has lanes."""
    lanes, size = len(places), dtype.itemsize
    part = min(16 // size, lanes)
    kind = ir.VectorType(memory_type(dtype), part)
    result = []
    for first in range(0, lanes, part):
        loaded = [builder.load(at(builder, place, first * size), typ=kind, align=size) for place in places]
        result += _transpose_parts(builder, [_concatenated(builder, loaded[i::part]) for i in range(part)], part)
    return result


def transposed(builder: ir.IRBuilder, rows: Sequence[Any]) -> list[Any]:
    """The columns of a square block of as many vectors as each has lanes."""
    lanes = len(rows)
    part = min(16 // (8 if rows[0].type.element == ir.DoubleType() else 4), lanes)
    count = lanes // part
    result: list[Any] = []
    for p in range(count):
        pick = _order([part * p + j for j in range(part)])
        pieces = [builder.shuffle_vector(row, row, pick) for row in rows]
        result += _transpose_parts(builder, [_concatenated(builder, pieces[i::part]) for i in range(part)], part)
    return result


def _order(places: Sequence[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(I32, len(places)), list(places))


def _concatenated(builder: ir.IRBuilder, pieces: list[Any]) -> Any:
    """The concatenation of vectors."""
    while len(pieces) > 1:
        pieces = [builder.shuffle_vector(a, b, _order(range(2 * a.type.count)))
                  for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
    return pieces[0]


def _transpose_parts(builder: ir.IRBuilder, vectors: list[Any], part: int) -> list[Any]:
    """The columns of each part's square block, of as many vectors as a part has elements."""
    lanes = vectors[0].type.count
    # elements of vectors that are `size` depthwise are interleaved in groups of `size`
    size = 1
    while size < part:
        low, high = (_order([start + half * part // 2 + i + j + other for start in range(0, lanes, part)
                             for i in range(0, part // 2, size) for other in (0, lanes) for j in range(size)])
                     for half in (0, 1))
        following = list(vectors)
        for i in range(part):
            if not i & size:
                pair = vectors[i], vectors[i + size]
                following[i], following[i + size] = (builder.shuffle_vector(*pair, order) for order in (low, high))
        vectors = following
        size *= 2
    # the steps leave the columns in bit-reversed order
    bits = part.bit_length() - 1
    return [vectors[int(format(i, f"0{bits}b")[::-1], 2)] for i in range(part)] if bits > 1 else vectors
