"""Winograd's panel pass: 16 small matmuls for one panel of output channels and a part of the tiles; output transform.

`panel_pass` has the signature of `../panel_pass.py`, but its positions are tiles of 2 × 2 outputs, and its source is
the transformed tiles (`tile_transform.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ....runtime import compilation
from ...llvm import kernel_entry
from ...llvm.loop_nests import I1, I32, POINTER, at, first_lanes, i64, local, loop, smaller
from ...llvm.lowering import constant
from ..epilogue import Epilogue, operands
from ..panel_pass import PANEL_PASS
from ..plan import CORRELATION
from ..plan_fields import Plan
from ..register_tile import Tile
from .tile_transform import IN, OUT, POINTS, apply_2d

#: maximum products accumulated sequentially; partial sums make the error smaller than that of the direct sums
MAX_SEQUENTIAL = 32


def _at(builder: ir.IRBuilder, m: Sequence[Any]) -> list[Any]:
    """Aᵀ times a column."""
    b = builder
    return [b.fadd(b.fadd(m[0], m[1]), m[2]), b.fsub(b.fsub(m[1], m[2]), m[3])]


def library(tile: Tile, masked: bool, epilogue: Epilogue | None) -> compilation.Library:
    """The compiled `panel_pass`.

    Args:
        tile: the register tile, of one row; its columns are neighbouring Winograd tiles.
        masked: the last vector may extend past the last channel.
        epilogue: the epilogue; None to store the outputs in a buffer.
    """
    recipe = (f"convolution winograd panel_pass {tile.dtype} {tile.columns}x{tile.vectors}x{tile.lanes}"
              f"{' masked' * masked} {epilogue.recipe if epilogue else ''}")
    return compilation.load(recipe, ("panel_pass",), lambda: _PanelPass(tile, masked, epilogue).text, "few")


class _PanelPass:
    """Generates `panel_pass`."""

    def __init__(self, tile: Tile, masked: bool, epilogue: Epilogue | None) -> None:
        self.tile, self.epilogue = tile, epilogue
        module = ir.Module("panel_pass")
        function, b = kernel_entry.begin(module, "panel_pass", PANEL_PASS)
        self.builder = b
        (words, self.pointers, self.source, self.target, self.panel, self.sums, self.n, self.images, self.d, self.depth,
         self.h, self.height, self.w, self.width, self.channel) = function.args
        plan = self.plan = Plan(b, words, CORRELATION)
        self.channels, self.points, self.plane = plan["in_channels"], plan["point.bytes"], plan["sum.bytes"]
        self.strides = {axis: plan[f"from.{axis}"] for axis in "ndhw"}
        group = b.udiv(self.channel, plan["out_channels"])
        # the flags are for all groups, next to the first group's points
        self.flags = at(b, at(b, self.source, b.mul(self.points, i64(POINTS))),
                        b.neg(b.mul(group, plan["from.group"])))
        left = b.sub(b.mul(b.add(group, i64(1)), plan["out_channels"]), self.channel)
        self.mask = first_lanes(b, b.sub(left, i64((tile.vectors - 1) * tile.lanes)), tile.lanes) if masked else None
        self.accumulators = tile.zeros(b)
        if epilogue is not None:
            self.steps, self.bases = operands(b, plan, self.pointers, epilogue, self.channel)
            self.finished = local(b, tile.vector, OUT * OUT * tile.vectors)
        self._matmuls()
        self._output_transforms()
        b.ret_void()
        self.text = str(module)

    def _matmuls(self) -> None:
        """For each point: (tiles, channels) times (channels, panel)."""
        b = self.builder
        # contiguous rows of tiles, and images, are one run
        length, flat = self.width, ir.Constant(I1, 1)
        counts = {"h": self.height, "d": self.depth, "n": self.images}
        for axis, count in counts.items():
            contiguous = b.or_(b.icmp_signed("==", count, i64(1)),
                           b.icmp_signed("==", b.mul(length, self.strides["w"]), self.strides[axis]))
            flat = b.and_(flat, contiguous)
            length, counts[axis] = b.select(flat, b.mul(length, count), length), b.select(flat, i64(1), count)
        run_bytes = b.mul(length, i64(self.tile.bytes))
        point_bytes = b.mul(self.channels, i64(self.tile.bytes))
        with loop(b, i64(0), i64(POINTS)) as point:
            source = at(b, self.source, b.mul(point, self.points))
            panel = at(b, self.panel, b.mul(point, point_bytes))
            sums = local(b, POINTER)
            b.store(at(b, self.sums, b.mul(point, self.plane)), sums)
            with (loop(b, i64(0), counts["n"]) as n, loop(b, i64(0), counts["d"]) as d,
                  loop(b, i64(0), counts["h"]) as h):
                place = source
                for axis, index in zip("ndh", (n, d, h), strict=True):
                    place = at(b, place, b.mul(index, self.strides[axis]))
                here = b.load(sums, typ=POINTER)
                with loop(b, i64(0), length, self.tile.columns) as column:
                    # what is stored past the end of a run is overwritten by the next run
                    self._matmul_tile(at(b, place, b.mul(column, self.strides["w"])), panel,
                                  at(b, here, b.mul(column, i64(self.tile.bytes))))
                b.store(at(b, here, run_bytes), sums)

    def _matmul_tile(self, place: Any, panel: Any, sums: Any) -> None:
        """Compute one register tile of the matmul, with rows from `place` on, into `sums`."""
        b, tile, size = self.builder, self.tile, self.tile.dtype.itemsize
        with loop(b, i64(0), self.channels, MAX_SEQUENTIAL) as first:
            for each in self.accumulators:
                b.store(constant(0.0, tile.vector), each)
            count = smaller(b, b.sub(self.channels, first), i64(MAX_SEQUENTIAL))
            tile.accumulate(b, self.accumulators, [at(b, place, b.mul(first, i64(size)))], self.strides["w"],
                            at(b, panel, b.mul(first, i64(tile.bytes))), count, size, tile.bytes)
            places = [at(b, sums, q * tile.bytes + v * tile.lanes * size)
                      for q in range(tile.columns) for v in range(tile.vectors)]
            with b.if_else(b.icmp_signed("==", first, i64(0))) as (write, add):
                with write:
                    for each, to in zip(self.accumulators, places, strict=True):
                        b.store(b.load(each, typ=tile.vector), to, align=size)
                with add:
                    for each, to in zip(self.accumulators, places, strict=True):
                        total = b.load(to, typ=tile.vector, align=size)
                        b.store(b.fadd(total, b.load(each, typ=tile.vector)), to, align=size)

    def _output_transforms(self) -> None:
        """Transform and store the sums, tile by tile, except those of flagged tiles."""
        b, tile = self.builder, self.tile
        sums = local(b, POINTER)
        b.store(self.sums, sums)
        with (loop(b, i64(0), self.images) as n, loop(b, i64(0), self.depth) as d, loop(b, i64(0), self.height) as h,
              loop(b, i64(0), self.width) as w):
            here = b.load(sums, typ=POINTER)
            b.store(at(b, here, tile.bytes), sums)
            flag = self.flags
            for axis, index in zip("ndhw", (n, d, h, w), strict=True):
                flag = at(b, flag, b.mul(index, self.strides[axis]))
            with b.if_then(b.icmp_signed("==", b.load(flag, typ=I32), ir.Constant(I32, 0))):
                outputs = [self._outputs(here, v) for v in range(tile.vectors)]
                if self.epilogue is None:
                    self._store(outputs, (n, d, h, w))
                else:
                    self._store_epilogue(self.epilogue, outputs, (n, d, h, w))

    def _outputs(self, here: Any, vector: int) -> list[list[Any]]:
        """The tile's 2 × 2 outputs, for one vector of channels."""
        b, tile, size = self.builder, self.tile, self.tile.dtype.itemsize
        here = at(b, here, vector * tile.lanes * size)
        points = [b.load(at(b, here, b.mul(self.plane, i64(i))), typ=tile.vector, align=size) for i in range(POINTS)]
        return apply_2d(b, _at, [points[i:i + IN] for i in range(0, POINTS, IN)])

    def _store(self, outputs: Sequence[list[list[Any]]], indices: Sequence[Any]) -> None:
        """Store in the buffer, which has room for tiles that extend past the edge."""
        b, tile, size = self.builder, self.tile, self.tile.dtype.itemsize
        target = self.target
        for axis, index in zip("ndhw", indices, strict=True):
            target = at(b, target, b.mul(index, self.plan[f"target.{axis}"]))
        for i in range(OUT):
            for j in range(OUT):
                to = at(b, target, b.add(b.mul(self.plan["buffer.h"], i64(i)), b.mul(self.plan["buffer.w"], i64(j))))
                for v, each in enumerate(outputs):
                    b.store(each[i][j], at(b, to, v * tile.lanes * size), align=size)

    def _store_epilogue(self, epilogue: Epilogue, outputs: Sequence[list[list[Any]]], indices: Sequence[Any]) -> None:
        """Compute and store the epilogue at the positions that exist."""
        b, tile = self.builder, self.tile
        for i in range(OUT):
            for j in range(OUT):
                for v, each in enumerate(outputs):
                    number_ = i64((i * OUT + j) * tile.vectors + v)
                    b.store(each[i][j], b.gep(self.finished, [number_], source_etype=tile.vector))
        n, d, h, w = (b.add(index, first) for index, first in zip(indices, (self.n, self.d, self.h, self.w),
                                                                   strict=True))
        h, w = b.mul(h, i64(OUT)), b.mul(w, i64(OUT))
        rows = smaller(b, b.sub(self.plan["size.h"], h), i64(OUT))
        columns = smaller(b, b.sub(self.plan["size.w"], w), i64(OUT))
        with loop(b, i64(0), rows) as i, loop(b, i64(0), columns) as j:
            where = n, d, b.add(h, i), b.add(w, j)
            here = []
            for base, steps in zip(self.bases, self.steps, strict=True):
                for index, step in zip(where, steps, strict=False):
                    base = at(b, base, b.mul(index, step))
                here.append(base)
            first = b.mul(b.add(b.mul(i, i64(OUT)), j), i64(tile.vectors))
            for v in range(tile.vectors):
                value = b.load(b.gep(self.finished, [b.add(first, i64(v))], source_etype=tile.vector), typ=tile.vector)
                mask = self.mask if v == tile.vectors - 1 else None
                epilogue.finish(b, value, here, [each[4] for each in self.steps], i64(v * tile.lanes), tile.lanes, mask)
