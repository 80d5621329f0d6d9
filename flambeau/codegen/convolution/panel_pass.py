"""The sums of one panel of channels at a part of the positions: every phase, row by row, tile by tile.

`sweep(plan, pointers, source, target, panel, room, n, images, d, depth, h, height, w, width, channel)` finds its
positions' taps from `source` on and stores from `target` on; the positions' numbers and that of the first channel are
for what an ending brings in. `room` is memory that Winograd's sums (`convolution_winograd_sweep`) need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...runtime import compilation
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, block_of, first_lanes, i64, local, loop, smaller, word
from ..llvm.lowering import intrinsic, number
from .epilogue import Ending, operands
from .plan import CORRELATION, PHASE
from .plan_fields import Plan
from .register_tile import Tile

SWEEP = ir.FunctionType(ir.VoidType(), [POINTER] * 6 + [I64] * 9)


def library(tile: Tile, masked: bool, ending: Ending | None) -> compilation.Library:
    """The compiled `sweep`.

    Args:
        masked: whether the last vector may reach past the last channel.
        ending: what is stored; None for the sums themselves.
    """
    how = f"{tile.rows}x{tile.columns}x{tile.vectors}x{tile.lanes}{' apart' * tile.apart}{' masked' * masked}"
    recipe = f"convolution sweep {tile.dtype} {how} {ending.recipe if ending else ''}"
    return compilation.load(recipe, ("sweep",), lambda: _Sweep(tile, masked, ending).text, "few")


class _Sweep:
    """Writes `sweep`."""

    def __init__(self, tile: Tile, masked: bool, ending: Ending | None) -> None:
        self.tile, self.masked, self.ending = tile, masked, ending
        module = ir.Module("sweep")
        function, self.builder = kernel_entry.begin(module, "sweep", SWEEP)
        b = self.builder
        (words, self.pointers, self.source, self.target, self.panel, _, self.n, self.images, self.d, self.depth,
         self.h, self.height, self.w, self.width, self.channel) = function.args
        plan = self.plan = Plan(b, words, CORRELATION)
        self.read = {name: plan[name] for name in (
            "from.n", "from.d", "from.h", "from.w", "target.n", "target.d", "target.h", "target.w",
            "spread.d", "spread.h", "spread.w", "phases", "phases.at", "operands.at")}
        left = b.sub(b.mul(b.add(b.udiv(self.channel, plan["width"]), i64(1)), plan["width"]),
                     self.channel)
        self.mask = first_lanes(b, b.sub(left, i64((tile.vectors - 1) * tile.lanes)), tile.lanes) if masked else None
        self.sums = tile.zeros(b)
        self.totals = block_of(b, tile.dtype, len(self.sums) * tile.lanes)
        if ending is not None:
            self.strides, self.bases = operands(b, plan, self.pointers, ending, self.channel)
            self.finished = local(b, tile.vector, tile.rows * tile.columns * tile.vectors)
        self.rows = [(local(b, POINTER), local(b, POINTER)) for _ in range(tile.rows)]
        self.indices = local(b, I64, 3 * tile.rows)
        with loop(b, i64(0), self.read["phases"]) as index:
            self._phase(words, index)
        b.ret_void()
        self.text = str(module)

    def _phase(self, words: Any, index: Any) -> None:
        b, tile, read = self.builder, self.tile, self.read
        first = b.add(read["phases.at"], b.mul(index, i64(len(PHASE))))
        phase = {name: word(b, words, b.add(first, i64(i))) for i, name in enumerate(PHASE)}
        depth = smaller(b, b.sub(phase["count.d"], self.d), self.depth)
        height = smaller(b, b.sub(phase["count.h"], self.h), self.height)
        width = smaller(b, b.sub(phase["count.w"], self.w), self.width)
        some = b.icmp_signed(">", smaller(b, smaller(b, depth, height), width), i64(0))
        with b.if_then(some):
            rows = b.mul(self.images, b.mul(depth, height))
            last_row, last = b.sub(rows, i64(1)), b.sub(width, i64(tile.columns))
            panel = at(b, self.panel, b.mul(phase["before"], i64(tile.bytes)))
            with loop(b, i64(0), rows, tile.rows) as row:
                for i in range(tile.rows):
                    self._row(i, smaller(b, b.add(row, i64(i)), last_row), depth, height, phase["target"])
                valid = smaller(b, b.sub(rows, row), i64(tile.rows))
                with loop(b, i64(0), width, tile.columns) as column:
                    place = smaller(b, column, last)
                    self._sum(words, phase, panel, place)
                    if self.ending is None:
                        self._store(place)
                    else:
                        self._finish(self.ending, phase, valid, place, b.sub(column, place))

    def _row(self, i: int, number_: Any, depth: Any, height: Any, offset: Any) -> None:
        """Where row number `number_` of the part begins, in the source and in the target."""
        b, read = self.builder, self.read
        short = [b.trunc(each, I32) for each in (number_, depth, height)]
        rest = b.udiv(short[0], short[2])
        h = b.zext(b.urem(short[0], short[2]), I64)
        d, n = b.zext(b.urem(rest, short[1]), I64), b.zext(b.udiv(rest, short[1]), I64)
        source, target = self.source, at(b, self.target, offset)
        for axis, index in zip("ndh", (n, d, h), strict=True):
            source = at(b, source, b.mul(index, read[f"from.{axis}"]))
            target = at(b, target, b.mul(index, read[f"target.{axis}"]))
        b.store(source, self.rows[i][0])
        b.store(target, self.rows[i][1])
        if self.ending is not None:
            for j, index in enumerate((b.add(n, self.n), b.add(d, self.d), b.add(h, self.h))):
                b.store(index, b.gep(self.indices, [i64(3 * i + j)], source_etype=I64))

    def _sum(self, words: Any, phase: dict[str, Any], panel: Any, place: Any) -> None:
        """The sums of the tile at column `place` of the rows."""
        b, tile, read = self.builder, self.tile, self.read
        begins = [at(b, b.load(source, typ=POINTER), b.mul(place, read["from.w"])) for source, _ in self.rows]
        factor = local(b, POINTER)
        b.store(panel, factor)
        folded = b.icmp_signed(">", phase["runs"], phase["fold"])
        with b.if_then(folded):
            self._each_total(lambda i, place: number(0.0, tile.vector))
        self._clear()
        with loop(b, i64(0), phase["runs"], phase["fold"]) as first:
            with b.if_then(b.icmp_signed(">", first, i64(0))):
                # long sums lose less when they are made of short ones
                self._each_total(self._added)
                self._clear()
            with loop(b, first, smaller(b, b.add(first, phase["fold"]), phase["runs"])) as run:
                entry = b.add(phase["offsets"], b.mul(run, i64(2)))
                offset, length = word(b, words, entry), word(b, words, b.add(entry, i64(1)))
                here = b.load(factor, typ=POINTER)
                tile.accumulate(b, self.sums, [at(b, begin, offset) for begin in begins], read["from.w"], here,
                                length, tile.dtype.itemsize, tile.bytes)
                b.store(at(b, here, b.mul(length, i64(tile.bytes))), factor)
        with b.if_then(folded):
            self._each_total(self._added)
            for i, each in enumerate(self.sums):
                b.store(b.load(self._total(i), typ=tile.vector, align=tile.dtype.itemsize), each)

    def _clear(self) -> None:
        for each in self.sums:
            self.builder.store(number(0.0, self.tile.vector), each)

    def _total(self, index: int) -> Any:
        return at(self.builder, self.totals, index * self.tile.lanes * self.tile.dtype.itemsize)

    def _added(self, index: int, place: Any) -> Any:
        """What a total and the tile's sum are together."""
        b, tile = self.builder, self.tile
        total = b.load(place, typ=tile.vector, align=tile.dtype.itemsize)
        return b.fadd(b.load(self.sums[index], typ=tile.vector), total)

    def _each_total(self, value: Callable[[int, Any], Any]) -> None:
        """Give every total a value."""
        for i in range(len(self.sums)):
            place = self._total(i)
            self.builder.store(value(i, place), place, align=self.tile.dtype.itemsize)

    def _store(self, place: Any) -> None:
        b, tile, size = self.builder, self.tile, self.tile.dtype.itemsize
        begins = [at(b, b.load(target, typ=POINTER), b.mul(place, self.read["target.w"])) for _, target in self.rows]
        for i, row, column, vector in tile.places():
            value = b.load(self.sums[i], typ=tile.vector)
            to = at(b, begins[row], b.add(b.mul(self.read["target.w"], i64(column)),
                                          i64(vector * tile.lanes * size)))
            if self.mask is not None and vector == tile.vectors - 1:
                intrinsic(b, "masked.store", ir.VoidType(), [value, to, ir.Constant(I32, size), self.mask],
                          [tile.vector, POINTER])
            else:
                b.store(value, to, align=size)

    def _finish(self, ending: Ending, phase: dict[str, Any], valid: Any, place: Any, done: Any) -> None:
        """Compute and store what the ending says, but of columns that were finished before, and rows met twice."""
        b, tile, read = self.builder, self.tile, self.read
        for i, each in enumerate(self.sums):
            b.store(b.load(each, typ=tile.vector), b.gep(self.finished, [i64(i)], source_etype=tile.vector))
        with loop(b, i64(0), valid) as row:
            three = b.mul(row, i64(3))
            n, d, h = (b.load(b.gep(self.indices, [b.add(three, i64(j))], source_etype=I64), typ=I64)
                       for j in range(3))
            where = [n, b.add(b.mul(d, read["spread.d"]), phase["start.d"]),
                     b.add(b.mul(h, read["spread.h"]), phase["start.h"])]
            bases = []
            for base, strides in zip(self.bases, self.strides, strict=True):
                for index, stride in zip(where, strides, strict=False):
                    base = at(b, base, b.mul(index, stride))
                bases.append(base)
            with loop(b, done, i64(tile.columns)) as column:
                w = b.add(b.add(place, column), self.w)
                w = b.add(b.mul(w, read["spread.w"]), phase["start.w"])
                here = [at(b, base, b.mul(w, strides[3])) for base, strides in zip(bases, self.strides, strict=True)]
                first = b.mul(b.add(b.mul(row, i64(tile.columns)), column), i64(tile.vectors))
                for v in range(tile.vectors):
                    value = b.load(b.gep(self.finished, [b.add(first, i64(v))], source_etype=tile.vector),
                                   typ=tile.vector)
                    mask = self.mask if v == tile.vectors - 1 else None
                    ending.finish(b, value, here, [each[4] for each in self.strides], i64(v * tile.lanes),
                                  tile.lanes, mask)
