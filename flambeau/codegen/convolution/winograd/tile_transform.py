"""Winograd's sums for kernels of 3 × 3 positions, tile by tile of 2 × 2 outputs: how they are made, and of what.

With d the 4 × 4 elements of one channel that a tile sees, and g the kernel, the tile is

    Y = Aᵀ [Σ over channels of (G g Gᵀ) · (Bᵀ d B)] A

where the product in the middle is element by element: 16 multiplications instead of 36. Bᵀ d B of all channels and
tiles of a block are made here, G g Gᵀ in `convolution_winograd_taps`, and in `convolution_winograd_sweep` the sums and
what Aᵀ and A make of them.

The weight's gradient is the transpose: Gᵀ [Σ over tiles of (A gy Aᵀ) · (Bᵀ d B)] G. Both factors are made here, the
sums are those of `convolution_gradient_code`.

Differences of an infinity, or of numbers whose products overflow, are not what the sums themselves would be. So tiles
that see such elements are marked, and left to the sums as they are defined.

Source: Lavin, Gray: Fast algorithms for convolutional neural networks, 2015 (arXiv:1509.09308).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ....runtime import compilation
from ...llvm import kernel_entry
from ...llvm.loop_nests import I32, I64, POINTER, at, first_lanes, i64, local, loop, word
from ...llvm.lowering import intrinsic, number, stored
from ...llvm.vectors import host_fuses

#: outputs along a tile, elements that it sees, and taps
OUT, IN, TAPS = 2, 4, 3
#: products of a tile, for each pair of channels
POINTS = IN * IN

#: list, source, where the points go, images, depth, height, width in tiles: how many tiles are marked
MAKING = ir.FunctionType(I64, [POINTER] * 3 + [I64] * 4)

#: of the list: bytes between tiles in the source, and between their points, along n, d, h and w; bytes from point to
#: point; channels
LIST = ("read.n", "read.d", "read.h", "read.w", "to.n", "to.d", "to.h", "to.w", "plane", "channels")


def both(builder: ir.IRBuilder, along: Any, square: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The matrix of `along` times a square, given by rows, times its transpose; by rows."""
    columns = [along(builder, column) for column in zip(*square, strict=True)]
    return [along(builder, row) for row in zip(*columns, strict=True)]


def _bt(builder: ir.IRBuilder, d: Sequence[Any]) -> list[Any]:
    """Bᵀ times a column."""
    b = builder
    return [b.fsub(d[0], d[2]), b.fadd(d[1], d[2]), b.fsub(d[2], d[1]), b.fsub(d[1], d[3])]


def _a(builder: ir.IRBuilder, g: Sequence[Any]) -> list[Any]:
    """A times a column."""
    return [g[0], builder.fadd(g[0], g[1]), builder.fsub(g[0], g[1]), builder.fneg(g[1])]


class Squares:
    """A running sum of squares: finite if all that was added is, and far from where products overflow."""

    def __init__(self, builder: ir.IRBuilder, vector: ir.VectorType) -> None:
        self.builder, self.vector = builder, vector
        self.total = local(builder, vector)

    def clear(self) -> None:
        self.builder.store(number(0.0, self.vector), self.total)

    def add(self, values: Sequence[Any]) -> None:
        b = self.builder
        total = b.load(self.total, typ=self.vector)
        for value in values:
            total = (intrinsic(b, "fma", self.vector, [value, value, total]) if host_fuses()
                     else b.fadd(b.fmul(value, value), total))
        b.store(total, self.total)

    def unbounded(self) -> Any:
        """1 if the sum is infinite or NaN in any lane, else 0, as an integer."""
        b = self.builder
        total = b.load(self.total, typ=self.vector)
        largest = number(float(np.finfo(np.float32).max), self.vector)
        outside = b.not_(b.fcmp_ordered("<=", total, largest))
        return b.zext(intrinsic(b, "vector.reduce.or", ir.IntType(1), [outside], [outside.type]), I64)


def points(dtype: np.dtype, lanes: int, transposed: bool) -> compilation.Library:
    """The compiled `points`: of images, or (transposed) of an output's gradient; by point, then tile, then channel."""
    name = "gradient's points" if transposed else "points"
    return compilation.load(f"convolution winograd {name} {dtype} {lanes}", ("points",),
                         lambda: _Points(dtype, lanes, transposed).text, "few")


class _Points:
    """Writes `points`."""

    def __init__(self, dtype: np.dtype, lanes: int, transposed: bool) -> None:
        module = ir.Module("points")
        function, b = kernel_entry.begin(module, "points", MAKING)
        table, source, results, *counts = function.args
        read = {name: word(b, table, i) for i, name in enumerate(LIST)}
        self.builder, self.lanes, self.size = b, lanes, dtype.itemsize
        self.side = OUT if transposed else IN
        self.matrix: Any = _a if transposed else _bt
        self.vector = ir.VectorType(stored(dtype), lanes)
        self.squares = Squares(b, self.vector)
        self.pitches = [b.sdiv(read[f"read.{axis}"], i64(OUT)) for axis in "hw"]
        self.plane = read["plane"]
        left = b.urem(read["channels"], i64(lanes))
        whole = b.sub(read["channels"], left)
        mask = first_lanes(b, left, lanes)
        marked = local(b, I64)
        b.store(i64(0), marked)
        with (loop(b, i64(0), counts[0]) as n, loop(b, i64(0), counts[1]) as d, loop(b, i64(0), counts[2]) as h,
              loop(b, i64(0), counts[3]) as w):
            place, result = source, results
            for index, axis in zip((n, d, h, w), "ndhw", strict=True):
                place = at(b, place, b.mul(index, read[f"read.{axis}"]))
                result = at(b, result, b.mul(index, read[f"to.{axis}"]))
            self.squares.clear()
            with loop(b, i64(0), whole, lanes) as c:
                offset = b.mul(c, i64(self.size))
                self._make(at(b, place, offset), at(b, result, offset), None)
            with b.if_then(b.icmp_signed(">", left, i64(0))):
                offset = b.mul(whole, i64(self.size))
                self._make(at(b, place, offset), at(b, result, offset), mask)
            mark = self.squares.unbounded()
            b.store(b.trunc(mark, I32), at(b, result, b.mul(self.plane, i64(POINTS))))
            b.store(b.add(b.load(marked, typ=I64), mark), marked)
        b.ret(b.load(marked, typ=I64))
        self.text = str(module)

    def _make(self, place: Any, result: Any, mask: Any) -> None:
        """All points of one vector of channels."""
        b = self.builder
        rows = [at(b, place, b.mul(self.pitches[0], i64(i))) for i in range(self.side)]
        square = [[self._load(at(b, row, b.mul(self.pitches[1], i64(j))), mask) for j in range(self.side)]
                  for row in rows]
        made = [each for row in both(b, self.matrix, square) for each in row]
        self.squares.add(made)
        for i, value in enumerate(made):
            b.store(value, at(b, result, b.mul(self.plane, i64(i))), align=self.size)

    def _load(self, place: Any, mask: Any) -> Any:
        if mask is None:
            return self.builder.load(place, typ=self.vector, align=self.size)
        return intrinsic(self.builder, "masked.load", self.vector, [
            place, ir.Constant(I32, self.size), mask, number(0.0, self.vector)], [self.vector, POINTER])
