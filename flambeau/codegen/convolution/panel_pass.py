"""The panel pass: the sums of one panel of output channels at a part of the positions, by phase, row and tile.

`panel_pass(plan, pointers, source, target, panel, workspace, n, images, d, depth, h, height, w, width, channel)` reads
the taps from `source` on and stores from `target` on. An epilogue's operands are addressed by the position indices and
the first channel. Only Winograd's variant (`winograd/panel_pass.py`) uses `workspace`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...runtime import compilation
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, first_lanes, i64, local, loop, smaller, stack_block, word
from ..llvm.lowering import constant, intrinsic
from .epilogue import Epilogue, operands
from .plan import CORRELATION, PHASE
from .plan_fields import Plan
from .register_tile import Tile

PANEL_PASS = ir.FunctionType(ir.VoidType(), [POINTER] * 6 + [I64] * 9)


def library(tile: Tile, masked: bool, epilogue: Epilogue | None) -> compilation.Library:
    """The compiled `panel_pass`.

    Args:
        masked: the last vector may extend past the last channel.
        epilogue: the epilogue; None to store the sums themselves.
    """
    variant = (f"{tile.rows}x{tile.columns}x{tile.vectors}x{tile.lanes}"
               f"{' depthwise' * tile.depthwise}{' masked' * masked}")
    recipe = f"convolution panel_pass {tile.dtype} {variant} {epilogue.recipe if epilogue else ''}"
    return compilation.load(recipe, ("panel_pass",), lambda: _PanelPass(tile, masked, epilogue).text, "few")


class _PanelPass:
    """Generates `panel_pass`."""

    def __init__(self, tile: Tile, masked: bool, epilogue: Epilogue | None) -> None:
        self.tile, self.masked, self.epilogue = tile, masked, epilogue
        module = ir.Module("panel_pass")
        function, self.builder = kernel_entry.begin(module, "panel_pass", PANEL_PASS)
        b = self.builder
        (words, self.pointers, self.source, self.target, self.panel, _, self.n, self.images, self.d, self.depth,
         self.h, self.height, self.w, self.width, self.channel) = function.args
        plan = self.plan = Plan(b, words, CORRELATION)
        self.read = {name: plan[name] for name in (
            "from.n", "from.d", "from.h", "from.w", "target.n", "target.d", "target.h", "target.w",
            "spread.d", "spread.h", "spread.w", "phases", "phases.at", "operands.at")}
        left = b.sub(b.mul(b.add(b.udiv(self.channel, plan["out_channels"]), i64(1)), plan["out_channels"]),
                     self.channel)
        self.mask = first_lanes(b, b.sub(left, i64((tile.vectors - 1) * tile.lanes)), tile.lanes) if masked else None
        self.sums = tile.zeros(b)
        self.totals = stack_block(b, tile.dtype, len(self.sums) * tile.lanes)
        if epilogue is not None:
            self.strides, self.bases = operands(b, plan, self.pointers, epilogue, self.channel)
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
        nonempty = b.icmp_signed(">", smaller(b, smaller(b, depth, height), width), i64(0))
        with b.if_then(nonempty):
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
                    if self.epilogue is None:
                        self._store(place)
                    else:
                        self._finish(self.epilogue, phase, valid, place, b.sub(column, place))

    def _row(self, i: int, row: Any, depth: Any, height: Any, offset: Any) -> None:
        """Set the addresses of `row` of the part, in the source and in the target."""
        b, read = self.builder, self.read
        row32, depth32, height32 = (b.trunc(each, I32) for each in (row, depth, height))
        rest = b.udiv(row32, height32)
        h = b.zext(b.urem(row32, height32), I64)
        d, n = b.zext(b.urem(rest, depth32), I64), b.zext(b.udiv(rest, depth32), I64)
        source, target = self.source, at(b, self.target, offset)
        for axis, index in zip("ndh", (n, d, h), strict=True):
            source = at(b, source, b.mul(index, read[f"from.{axis}"]))
            target = at(b, target, b.mul(index, read[f"target.{axis}"]))
        b.store(source, self.rows[i][0])
        b.store(target, self.rows[i][1])
        if self.epilogue is not None:
            for j, index in enumerate((b.add(n, self.n), b.add(d, self.d), b.add(h, self.h))):
                b.store(index, b.gep(self.indices, [i64(3 * i + j)], source_etype=I64))

    def _sum(self, words: Any, phase: dict[str, Any], panel: Any, place: Any) -> None:
        """Compute the sums of the tile at column `place` of the rows."""
        b, tile, read = self.builder, self.tile, self.read
        begins = [at(b, b.load(source, typ=POINTER), b.mul(place, read["from.w"])) for source, _ in self.rows]
        factor = local(b, POINTER)
        b.store(panel, factor)
        folded = b.icmp_signed(">", phase["runs"], phase["fold"])
        with b.if_then(folded):
            self._each_total(lambda i, place: constant(0.0, tile.vector))
        self._clear()
        with loop(b, i64(0), phase["runs"], phase["fold"]) as first:
            with b.if_then(b.icmp_signed(">", first, i64(0))):
                # partial sums limit the rounding error of long sums
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
            self.builder.store(constant(0.0, self.tile.vector), each)

    def _total(self, index: int) -> Any:
        return at(self.builder, self.totals, index * self.tile.lanes * self.tile.dtype.itemsize)

    def _added(self, index: int, place: Any) -> Any:
        """A total plus the tile's sum."""
        b, tile = self.builder, self.tile
        total = b.load(place, typ=tile.vector, align=tile.dtype.itemsize)
        return b.fadd(b.load(self.sums[index], typ=tile.vector), total)

    def _each_total(self, value: Callable[[int, Any], Any]) -> None:
        """Set every total."""
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

    def _finish(self, epilogue: Epilogue, phase: dict[str, Any], valid: Any, place: Any, done: Any) -> None:
        """Compute and store the epilogue, except for columns from `done` on and rows that were stored before."""
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
                    epilogue.finish(b, value, here, [each[4] for each in self.strides], i64(v * tile.lanes),
                                  tile.lanes, mask)
