"""Winograd F(2 × 2, 3 × 3): the input transform, and its counterpart for the output's gradient.

With d the 4 × 4 input elements of one channel that a tile reads, and g the kernel, the tile's 2 × 2 outputs are

    Y = Aᵀ [Σ over channels of (G g Gᵀ) · (Bᵀ d B)] A

where the middle product is elementwise: 16 multiplications instead of 36, one per *point*. This module transforms all
channels and tiles of a block (Bᵀ d B); `filter_transform.py` computes G g Gᵀ, `panel_pass.py` the sums and Aᵀ [...] A.

The weight gradient is the transpose: Gᵀ [Σ over tiles of (A gy Aᵀ) · (Bᵀ d B)] G. Both factors are transformed here,
`../weight_gradient_code.py` computes the sums.

Transforms of infinities, NaN, or elements whose squares overflow differ from the direct sums. Tiles that read such
elements are flagged and computed directly.

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
from ...llvm.lowering import constant, intrinsic, memory_type
from ...llvm.vectors import host_has_fma

#: side lengths of a tile's outputs, its inputs, and the kernel
OUT, IN, TAPS = 2, 4, 3
#: points (transformed elements) of a tile, per channel
POINTS = IN * IN

#: fields, source, destination; images, depth, height, width in tiles. Returns the number of flagged tiles.
TRANSFORM = ir.FunctionType(I64, [POINTER] * 3 + [I64] * 4)

#: strides in bytes between tiles in the source, and between transformed tiles, along n, d, h and w; bytes between
#: points; channels
TRANSFORM_FIELDS = ("read.n", "read.d", "read.h", "read.w", "to.n", "to.d", "to.h", "to.w", "plane",
                    "channels")


def apply_2d(builder: ir.IRBuilder, transform: Any, square: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """M X Mᵀ of a square X by rows, where `transform` multiplies a column with M; by rows."""
    columns = [transform(builder, column) for column in zip(*square, strict=True)]
    return [transform(builder, row) for row in zip(*columns, strict=True)]


def _bt(builder: ir.IRBuilder, d: Sequence[Any]) -> list[Any]:
    """Bᵀ times a column."""
    b = builder
    return [b.fsub(d[0], d[2]), b.fadd(d[1], d[2]), b.fsub(d[2], d[1]), b.fsub(d[1], d[3])]


def _a(builder: ir.IRBuilder, g: Sequence[Any]) -> list[Any]:
    """A times a column."""
    return [g[0], builder.fadd(g[0], g[1]), builder.fsub(g[0], g[1]), builder.fneg(g[1])]


class OverflowCheck:
    """A running sum of squares, which is finite unless an element is not finite or its square overflows."""

    def __init__(self, builder: ir.IRBuilder, vector: ir.VectorType) -> None:
        self.builder, self.vector = builder, vector
        self.total = local(builder, vector)

    def clear(self) -> None:
        self.builder.store(constant(0.0, self.vector), self.total)

    def add(self, values: Sequence[Any]) -> None:
        b = self.builder
        total = b.load(self.total, typ=self.vector)
        for value in values:
            total = (intrinsic(b, "fma", self.vector, [value, value, total]) if host_has_fma()
                     else b.fadd(b.fmul(value, value), total))
        b.store(total, self.total)

    def overflowed(self) -> Any:
        """1 if the sum is infinite or NaN in any lane, else 0, as an integer."""
        b = self.builder
        total = b.load(self.total, typ=self.vector)
        largest = constant(float(np.finfo(np.float32).max), self.vector)
        outside = b.not_(b.fcmp_ordered("<=", total, largest))
        return b.zext(intrinsic(b, "vector.reduce.or", ir.IntType(1), [outside], [outside.type]), I64)


def library(dtype: np.dtype, lanes: int, transposed: bool) -> compilation.Library:
    """The compiled `transform` of images, or (transposed) of an output's gradient, to (point, tile, channel)."""
    name = "gradient transform" if transposed else "input transform"
    return compilation.load(f"convolution winograd {name} {dtype} {lanes}", ("transform",),
                            lambda: _Transform(dtype, lanes, transposed).text, "few")


class _Transform:
    """Generates `transform`."""

    def __init__(self, dtype: np.dtype, lanes: int, transposed: bool) -> None:
        module = ir.Module("transform")
        function, b = kernel_entry.begin(module, "transform", TRANSFORM)
        table, source, results, *counts = function.args
        read = {name: word(b, table, i) for i, name in enumerate(TRANSFORM_FIELDS)}
        self.builder, self.lanes, self.size = b, lanes, dtype.itemsize
        self.side = OUT if transposed else IN
        self.matrix: Any = _a if transposed else _bt
        self.vector = ir.VectorType(memory_type(dtype), lanes)
        self.squares = OverflowCheck(b, self.vector)
        self.pitches = [b.sdiv(read[f"read.{axis}"], i64(OUT)) for axis in "hw"]
        self.plane = read["plane"]
        left = b.urem(read["channels"], i64(lanes))
        full_end = b.sub(read["channels"], left)
        mask = first_lanes(b, left, lanes)
        flagged = local(b, I64)
        b.store(i64(0), flagged)
        with (loop(b, i64(0), counts[0]) as n, loop(b, i64(0), counts[1]) as d, loop(b, i64(0), counts[2]) as h,
              loop(b, i64(0), counts[3]) as w):
            place, result = source, results
            for index, axis in zip((n, d, h, w), "ndhw", strict=True):
                place = at(b, place, b.mul(index, read[f"read.{axis}"]))
                result = at(b, result, b.mul(index, read[f"to.{axis}"]))
            self.squares.clear()
            with loop(b, i64(0), full_end, lanes) as c:
                offset = b.mul(c, i64(self.size))
                self._transform_vector(at(b, place, offset), at(b, result, offset), None)
            with b.if_then(b.icmp_signed(">", left, i64(0))):
                offset = b.mul(full_end, i64(self.size))
                self._transform_vector(at(b, place, offset), at(b, result, offset), mask)
            flag = self.squares.overflowed()
            b.store(b.trunc(flag, I32), at(b, result, b.mul(self.plane, i64(POINTS))))
            b.store(b.add(b.load(flagged, typ=I64), flag), flagged)
        b.ret(b.load(flagged, typ=I64))
        self.text = str(module)

    def _transform_vector(self, place: Any, result: Any, mask: Any) -> None:
        """Compute all points of one vector of channels."""
        b = self.builder
        rows = [at(b, place, b.mul(self.pitches[0], i64(i))) for i in range(self.side)]
        square = [[self._load(at(b, row, b.mul(self.pitches[1], i64(j))), mask) for j in range(self.side)]
                  for row in rows]
        points = [each for row in apply_2d(b, self.matrix, square) for each in row]
        self.squares.add(points)
        for i, value in enumerate(points):
            b.store(value, at(b, result, b.mul(self.plane, i64(i))), align=self.size)

    def _load(self, place: Any, mask: Any) -> Any:
        if mask is None:
            return self.builder.load(place, typ=self.vector, align=self.size)
        return intrinsic(self.builder, "masked.load", self.vector, [
            place, ir.Constant(I32, self.size), mask, constant(0.0, self.vector)], [self.vector, POINTER])
