"""The tile of accumulators in registers that convolutions are made of, and how large it is best made.

A tile is rows × columns × vectors. One step multiplies a number of every (row, column) with every vector of a factor,
and adds the products to the accumulators: for a convolution numbers are a source's channel at neighbouring positions,
and vectors lie over the output channels of the weights. Where each channel is convolved alone, vectors over channels
stand in the numbers' place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...runtime import target
from ..llvm.loop_nests import POINTER, after, at, i64, local, loop
from ..llvm.lowering import intrinsic, number, splat, stored
from ..llvm.vectors import host_fuses

#: steps in a turn of the innermost loop
STEPS = 4
#: registers, of 32, that LLVM wants for what it loads early: a tile that took them would have its sums spilled
EARLY = 4


class Tile(NamedTuple):
    """Accumulators: `rows` × `columns` × `vectors` of `lanes` elements.

    Attributes:
        apart: whether each channel is convolved alone, so that a vector of channels meets a vector of weights.
    """

    dtype: np.dtype
    rows: int
    columns: int
    vectors: int
    lanes: int
    apart: bool = False

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType(stored(self.dtype), self.lanes)

    @property
    def bytes(self) -> int:
        """Of the vectors that lie beside each other."""
        return self.vectors * self.lanes * self.dtype.itemsize

    def zeros(self, builder: ir.IRBuilder) -> list[Any]:
        """Accumulators, as variables of the function that is written, set to 0 where the builder stands."""
        found = [local(builder, self.vector) for _ in range(self.rows * self.columns * self.vectors)]
        for each in found:
            builder.store(number(0.0, self.vector), each)
        return found

    def places(self) -> Iterator[tuple[int, int, int, int]]:
        """(place in the accumulators' list, row, column, vector) of each."""
        for i in range(self.rows * self.columns * self.vectors):
            yield i, i // (self.columns * self.vectors), i // self.vectors % self.columns, i % self.vectors

    def accumulate(self, builder: ir.IRBuilder, sums: Sequence[Any], bases: Sequence[Any], step: Any, factor: Any,
                   count: Any, stride: Any, factor_stride: Any) -> None:
        """sums[r, q, v] += bases[r][q · step + i · stride] · factor[i · factor_stride, v], for all i below `count`.

        Args:
            bases: where each row begins.
            step: bytes between columns, an integer or a value.
            factor: where the first vectors lie.
            stride, factor_stride: bytes between the numbers, and the vectors, of one i and the next.
        """
        offsets = [i64(q * step) if isinstance(step, int) else builder.mul(step, i64(q)) for q in range(self.columns)]
        places = [local(builder, POINTER) for _ in range(len(bases) + 1)]
        for place, start in zip(places, [*bases, factor], strict=True):
            builder.store(start, place)
        advances = [*[stride] * len(bases), factor_stride]
        whole = builder.sub(count, builder.urem(count, i64(STEPS)))
        for start, stop, together in ((i64(0), whole, STEPS), (whole, count, 1)):
            with loop(builder, start, stop, together):
                pointers = [builder.load(place, typ=POINTER) for place in places]
                for i in range(together):
                    if i:  # loads for two steps at once would need more registers than there are
                        totals = [builder.load(each, typ=self.vector) for each in sums]
                        pointers = after(builder, pointers, totals)
                    self._step(builder, sums, [at(builder, each, _times(builder, advance, i))
                                               for each, advance in zip(pointers, advances, strict=True)], offsets)
                for place, pointer, advance in zip(places, pointers, advances, strict=True):
                    builder.store(at(builder, pointer, _times(builder, advance, together)), place)

    def _step(self, builder: ir.IRBuilder, sums: Sequence[Any], places: Sequence[Any], offsets: Sequence[Any]) -> None:
        """Add the products of the numbers and vectors at these places, those of the vectors last."""
        size = self.dtype.itemsize
        width = self.lanes * size
        *bases, here = places
        factors = [builder.load(at(builder, here, v * width), typ=self.vector, align=size)
                   for v in range(self.vectors)]
        for r, base in enumerate(bases):
            for q, offset in enumerate(offsets):
                place = at(builder, base, offset)
                if not self.apart:
                    value = splat(builder, builder.load(place, typ=stored(self.dtype), align=size), self.lanes)
                for v, vector in enumerate(factors):
                    if self.apart:
                        value = builder.load(at(builder, place, v * width), typ=self.vector, align=size)
                    total = sums[(r * self.columns + q) * self.vectors + v]
                    builder.store(_multiply_add(builder, value, vector, builder.load(total, typ=self.vector)), total)


def _times(builder: ir.IRBuilder, stride: Any, count: int) -> Any:
    """So many strides, an integer or a value."""
    return stride * count if isinstance(stride, int) else builder.mul(stride, i64(count))


def _multiply_add(builder: ir.IRBuilder, a: Any, b: Any, c: Any) -> Any:
    if host_fuses():
        return intrinsic(builder, "fma", a.type, [a, b, c])
    return builder.fadd(builder.fmul(a, b), c)


@cache
def registers() -> int:
    """How many vector registers a tile may take: its accumulators, the factor's vectors, and a number."""
    host = target.host()
    return 32 - EARLY if host.vector_bits == 512 or host.triple.startswith(("aarch64", "arm64")) else 16


def lanes_for(width: int, dtype: np.dtype) -> int:
    """Lanes of vectors over `width` channels: the machine's, or fewer where they would stay empty."""
    most = target.host().vector_bits // 8 // dtype.itemsize
    lanes = 16 // dtype.itemsize
    while lanes < min(most, width):
        lanes *= 2
    return lanes


class Choice(NamedTuple):
    """A tile's rows, columns and vectors; `last` is the number of vectors of the last tile, where fewer are left."""

    rows: int
    columns: int
    vectors: int
    last: int


@cache
def choose(columns: int, rows: int, vectors: int, apart: bool) -> Choice:
    """The tile that covers `rows` × `columns` numbers and as many `vectors` in the fewest processor cycles.

    The last tile of a row begins so early that it ends with the row; rows that are missing are computed twice.
    """
    free = registers()
    best, found = float("inf"), Choice(1, 1, 1, 1)
    for v in range(1, min(vectors, 4) + 1):
        for r in range(1, min(rows, 8) + 1):
            numbers = 1 if v > 1 else 3  # where each meets but one vector, the next are loaded meanwhile
            most = (free - numbers - v) // v // r
            for q in range(1, min(columns, most) + 1):
                tiles = -(-columns // q) * -(-rows // r)
                whole, last = divmod(vectors, v)
                cost = tiles * (whole * _cycles(r, q, v, apart) + (_cycles(r, q, last, apart) if last else 0.0))
                if cost < best * 0.999:
                    best, found = cost, Choice(r, q, v, last or v)
    return found


def _cycles(rows: int, columns: int, vectors: int, apart: bool) -> float:
    """What one step takes: two multiplications or loads a cycle, four cycles until a sum can be added to again."""
    numbers = rows * columns
    loads = numbers * vectors if apart else numbers
    # vectors of the factor come from the second cache: they cost twice what numbers do
    return max(numbers * vectors / 2, (loads + 2 * vectors) / 1.8, 4.0) + 0.5 + 0.1 * rows

