"""Register tiling: the tile of accumulators of the convolution microkernel, and the choice of its shape.

A tile is rows × columns × vectors. One step multiplies a scalar per (row, column) with every vector of a factor and
accumulates the products. In a convolution the scalars are one source channel at neighbouring positions, and the vectors
hold weights over output channels. In a depthwise convolution, vectors over channels replace the scalars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...runtime import target
from ..llvm.loop_nests import POINTER, at, i64, inside_array, local, loop, order_after, shared_base
from ..llvm.lowering import constant, intrinsic, memory_type, splat
from ..llvm.vectors import host_has_fma

#: unrolling of the innermost loop
UNROLL = 4
#: registers, of 32, that LLVM uses for early loads: a tile that took them would spill its accumulators
LOAD_REGISTERS = 4


class Tile(NamedTuple):
    """Accumulators: `rows` × `columns` × `vectors` of `lanes` elements.

    Attributes:
        depthwise: each channel is convolved separately: vectors of channels times vectors of weights.
    """

    dtype: np.dtype
    rows: int
    columns: int
    vectors: int
    lanes: int
    depthwise: bool = False

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType(memory_type(self.dtype), self.lanes)

    @property
    def bytes(self) -> int:
        """Bytes of a panel row."""
        return self.vectors * self.lanes * self.dtype.itemsize

    def zeros(self, builder: ir.IRBuilder) -> list[Any]:
        """Accumulators as stack variables of the function, zeroed at the builder's position."""
        sums = [local(builder, self.vector) for _ in range(self.rows * self.columns * self.vectors)]
        for each in sums:
            builder.store(constant(0.0, self.vector), each)
        return sums

    def places(self) -> Iterator[tuple[int, int, int, int]]:
        """(index in the list of accumulators, row, column, vector) of each."""
        for i in range(self.rows * self.columns * self.vectors):
            yield i, i // (self.columns * self.vectors), i // self.vectors % self.columns, i % self.vectors

    def accumulate(self, builder: ir.IRBuilder, sums: Sequence[Any], bases: Sequence[Any], step: Any, factor: Any,
                   count: Any, stride: Any, factor_stride: Any) -> None:
        """sums[r, q, v] += bases[r][q · step + i · stride] · factor[i · factor_stride, v], for all i below `count`.

        Args:
            bases: addresses of the rows.
            step: bytes between columns, an integer or an IR value.
            factor: address of the first vectors.
            stride, factor_stride: bytes from step i to step i + 1, of the scalars and of the vectors.
        """
        offsets = [i64(q * step) if isinstance(step, int) else builder.mul(step, i64(q)) for q in range(self.columns)]
        places = [local(builder, POINTER) for _ in range(len(bases) + 1)]
        for place, start in zip(places, [*bases, factor], strict=True):
            builder.store(start, place)
        advances = [*[stride] * len(bases), factor_stride]
        unrolled_end = builder.sub(count, builder.urem(count, i64(UNROLL)))
        loops = [(i64(0), unrolled_end, UNROLL), (unrolled_end, count, 1)]
        if target.host().is_wasm:  # engines would compute all steps of one sum after another
            loops = [(i64(0), count, 1)]
        for start, stop, unroll in loops:
            with loop(builder, start, stop, unroll):
                pointers = [builder.load(place, typ=POINTER) for place in places]
                for i in range(unroll):
                    if i:  # keep LLVM from hoisting the loads of two steps: it would run out of registers
                        totals = [builder.load(each, typ=self.vector) for each in sums]
                        pointers = order_after(builder, pointers, totals)
                    self._step(builder, sums, [at(builder, each, _times(builder, advance, i))
                                               for each, advance in zip(pointers, advances, strict=True)], offsets)
                for place, pointer, advance in zip(places, pointers, advances, strict=True):
                    builder.store(at(builder, pointer, _times(builder, advance, unroll)), place)

    def _step(self, builder: ir.IRBuilder, sums: Sequence[Any], places: Sequence[Any], offsets: Sequence[Any]) -> None:
        """Accumulate the products of the scalars and the vectors at these addresses; the vectors' is the last."""
        size = self.dtype.itemsize
        width = self.lanes * size
        *bases, here = places
        here = shared_base(builder, here)
        factors = [builder.load(inside_array(builder, here, v * width), typ=self.vector, align=size)
                   for v in range(self.vectors)]
        for r, base in enumerate(bases):
            for q, offset in enumerate(offsets):
                place = at(builder, base, offset)
                if self.depthwise:
                    place = shared_base(builder, place)
                if not self.depthwise:
                    value = splat(builder, builder.load(place, typ=memory_type(self.dtype), align=size), self.lanes)
                for v, vector in enumerate(factors):
                    if self.depthwise:
                        value = builder.load(inside_array(builder, place, v * width), typ=self.vector, align=size)
                    total = sums[(r * self.columns + q) * self.vectors + v]
                    builder.store(multiply_add(builder, value, vector, builder.load(total, typ=self.vector)), total)


def _times(builder: ir.IRBuilder, stride: Any, count: int) -> Any:
    """`count` strides, an integer or an IR value."""
    return stride * count if isinstance(stride, int) else builder.mul(stride, i64(count))


def multiply_add(builder: ir.IRBuilder, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once where the processor can."""
    if host_has_fma():
        return intrinsic(builder, "fma", a.type, [a, b, c])
    return builder.fadd(builder.fmul(a, b), c)


@cache
def registers() -> int:
    """Vector registers available to a tile: accumulators, the factor's vectors, and a splatted scalar."""
    host = target.host()
    if host.is_wasm:  # engines keep one of the 16 for themselves
        return 15
    return 32 - LOAD_REGISTERS if host.vector_bits == 512 or host.triple.startswith(("aarch64", "arm64")) else 16


def lanes_for(width: int, dtype: np.dtype) -> int:
    """Lanes of vectors over `width` channels: the machine's, or fewer where lanes would stay empty."""
    host_lanes = target.host().vector_bits // 8 // dtype.itemsize
    lanes = 16 // dtype.itemsize
    while lanes < min(host_lanes, width):
        lanes *= 2
    return lanes


class TileShape(NamedTuple):
    """A tile's rows, columns and vectors; `last` is the number of vectors of the last tile."""

    rows: int
    columns: int
    vectors: int
    last: int


@cache
def choose_tile(columns: int, rows: int, vectors: int, depthwise: bool) -> TileShape:
    """The tile that covers `rows` × `columns` scalars and `vectors` in the fewest estimated cycles.

    The last tile of a row overlaps the one before it; missing rows repeat the last row.
    """
    free = registers()
    best, shape = float("inf"), TileShape(1, 1, 1, 1)
    for v in range(1, min(vectors, 4) + 1):
        for r in range(1, min(rows, 8) + 1):
            scalars = 1 if v > 1 else 3  # with a single vector, the next scalars are loaded early
            max_columns = (free - scalars - v) // v // r
            if target.host().is_wasm:  # engines load all scalars of a step first
                max_columns = (free - 1 - v) // (v + 1) // r
            for q in range(1, min(columns, max_columns) + 1):
                tiles = -(-columns // q) * -(-rows // r)
                panels, last = divmod(vectors, v)
                cost = tiles * (panels * _cycles(r, q, v, depthwise) + (_cycles(r, q, last,
                                                                                depthwise) if last else 0.0))
                if cost < best * 0.999:
                    best, shape = cost, TileShape(r, q, v, last or v)
    return shape


def _cycles(rows: int, columns: int, vectors: int, depthwise: bool) -> float:
    """Estimated cycles of one step: two FMAs or loads per cycle, an FMA latency of four cycles."""
    scalars = rows * columns
    loads = scalars * vectors if depthwise else scalars
    # the factor's vectors come from L2 and cost twice as much as the scalars
    return max(scalars * vectors / 2, (loads + 2 * vectors) / 1.8, 4.0) + 0.5 + 0.1 * rows

