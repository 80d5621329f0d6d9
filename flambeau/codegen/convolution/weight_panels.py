"""Weights in panels, as convolutions read them: vectors over output channels, one for each tap and input channel.

Panel p of a group holds vectors p · V, p · V + 1, ... side by side, V of them or as many as are left. Its rows are the
taps, in the order in which the convolution meets them, and within a tap the input channels. What is behind the last
output channel is zero. `pack` writes panels; `combine` adds up panels that the weight's gradient was computed in, and
writes them as weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import compilation
from ...runtime.launch import ALIGNMENT, Launch
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, block_of, first_lanes, i64, local, loop, smaller, word
from ..llvm.lowering import intrinsic, number, stored
from .transpose import turned

#: of a plan: pointers' numbers, bytes before the panels in scratch memory, output channels of a group, their vectors
#: and vectors of a panel; bytes between output channels and between groups of weights; how often a row of elements
#: that lie together is met for each output channel, bytes between those, and the input channels in it; taps; input
#: channels; panels to add up and bytes between them; panels of a group, of all groups and of a chunk
PLAN = ("weights", "scratch", "before", "width", "vectors", "panel", "lane.stride", "group.stride", "rows",
        "row.stride", "inside", "taps", "depth", "pieces", "piece.stride", "panels", "jobs", "share")

#: plan, weights, the panel, its group and its number: `panel`, which packs or combines one
PANEL = ir.FunctionType(ir.VoidType(), [POINTER] * 3 + [I64] * 2)

#: panels of a chunk have at least so many elements together
GRAIN = 1 << 14


class Weights:
    """Where weights lie, by output channel of a group, input channel and tap, and how the panels lie.

    Args:
        lane, group, channel: strides in bytes, by output channel, group and input channel.
        taps: of each tap, the bytes from the first.
        places: of each tap, its place in the panels.
    """

    def __init__(self, dtype: np.dtype, lanes: int, width: int, depth: int, groups: int, lane: int, group: int,
                 channel: int, taps: Sequence[int], places: Sequence[int], panel: int) -> None:
        self.dtype, self.lanes, self.width, self.depth, self.groups = dtype, lanes, width, depth, groups
        self.lane, self.group, self.channel, self.taps, self.places = lane, group, channel, taps, places
        self.panel = panel
        self.vectors = -(-width // lanes)
        size = dtype.itemsize
        dense = all(offset == i * size for i, offset in enumerate(taps))
        if lane == size or (width == 1 and not dense):
            self.kind = "together"
        elif dense and (len(taps) > 1 or channel != size):
            self.kind = "turned"
        else:
            self.kind = "channels turned" if channel == size else "scattered"

    @property
    def bytes(self) -> int:
        """Of all panels."""
        return self.groups * self.vectors * self.lanes * len(self.taps) * self.depth * self.dtype.itemsize

    @property
    def panels(self) -> int:
        """How many a group has."""
        return -(-self.vectors // self.panel)

    def words(self, weights: int = 0, scratch: int = 0, before: int = 0, pieces: int = 1) -> tuple[int, ...]:
        """The plan, for weights and scratch memory that are pointers of these numbers."""
        size = self.dtype.itemsize
        whole = self.channel == len(self.taps) * size  # input channels and taps lie together
        rows, inside = (1, self.depth) if whole and self.kind == "turned" else (self.depth, 1)
        if self.kind == "channels turned":
            rows = len(self.taps)
        share = max(1, GRAIN // max(1, self.lanes * self.panel * len(self.taps) * self.depth))
        return (weights, scratch, before, self.width, self.vectors, self.panel, self.lane, self.group, rows,
                self.channel, inside, len(self.taps), self.depth, pieces, -(-self.bytes // ALIGNMENT) * ALIGNMENT,
                self.panels,
                self.groups * self.panels, share, *self.places, *self.taps)

    def library(self, name: str) -> compilation.Library:
        """The compiled "pack" or "combine": `panel`, for one of them, and a kernel's `body`."""
        return compilation.load(f"convolution {name} {self.dtype} {self.lanes} {self.kind}", ("panel", "body"),
                             lambda: _generate(name, self.dtype, self.lanes, self.kind), "few")

    def launch(self, name: str, weights: int, scratch: int, before: int, pieces: int = 1) -> Launch:
        """The kernel that packs or combines all panels."""
        words, library = self.words(weights, scratch, before, pieces), self.library(name)
        share = words[PLAN.index("share")]
        return Launch(library, library.symbol("body"), -(-self.groups * self.panels // share), words)


class _Writer:
    """Writes `panel`."""

    def __init__(self, module: ir.Module, packs: bool, dtype: np.dtype, lanes: int, way: str) -> None:
        self.packs, self.dtype, self.lanes, self.way = packs, dtype, lanes, way
        self.function, self.builder = kernel_entry.begin(module, "panel", PANEL)
        self.kind, self.size = stored(dtype), dtype.itemsize
        self.vector = ir.VectorType(self.kind, lanes)
        self.align = ir.Constant(I32, self.size)
        self.plan, weights, panel, group, number_ = self.function.args
        b = self.builder
        self.read = {key: word(b, self.plan, i) for i, key in enumerate(PLAN)}
        self.square = block_of(b, dtype, lanes * lanes)
        width = lanes * self.size
        first = b.mul(number_, self.read["panel"])
        some = smaller(b, self.read["panel"], b.sub(self.read["vectors"], first))
        self.pitch = b.mul(some, i64(width))
        self.tap_pitch = b.mul(self.pitch, self.read["depth"])
        base = at(b, weights, b.mul(group, self.read["group.stride"]))
        with loop(b, i64(0), some) as beside:
            before = b.mul(b.add(first, beside), i64(lanes))
            self.count = smaller(b, b.sub(self.read["width"], before), i64(lanes))
            self.kept = first_lanes(b, self.count, lanes)
            self.from_ = at(b, base, b.mul(before, self.read["lane.stride"]))
            self.to = at(b, panel, b.mul(beside, i64(width)))
            if way in ("turned", "channels turned"):
                self.turned()
            else:
                self.beside()
        b.ret_void()

    def place(self, tap: Any, channel: Any) -> Any:
        """Where the vector of a tap and an input channel lies in the panel."""
        b = self.builder
        before = b.mul(word(b, self.plan, b.add(i64(len(PLAN)), tap)), self.tap_pitch)
        return at(b, self.to, b.add(before, b.mul(channel, self.pitch)))

    def offset(self, tap: Any) -> Any:
        b = self.builder
        return word(b, self.plan, b.add(b.add(i64(len(PLAN)), self.read["taps"]), tap))

    def write(self, place: Any, vector: Any) -> None:
        """A vector into the panel, zero behind the last output channel."""
        zero = number(0, self.vector)
        self.builder.store(self.builder.select(self.kept, vector, zero), place, align=self.size)

    def total(self, place: Any) -> Any:
        """The sum of the vectors at the same place of all pieces."""
        b, read = self.builder, self.read
        total, here = local(b, self.vector), local(b, POINTER)
        b.store(b.load(place, typ=self.vector, align=self.size), total)
        b.store(place, here)
        with loop(b, i64(1), read["pieces"]):
            following = at(b, b.load(here, typ=POINTER), read["piece.stride"])
            b.store(following, here)
            b.store(b.fadd(b.load(total, typ=self.vector), b.load(following, typ=self.vector, align=self.size)), total)
        return b.load(total, typ=self.vector)

    def each(self, row: Any) -> Any:
        """Element number `row` of the square, as a place."""
        return self.builder.gep(self.square, [i64(row) if isinstance(row, int) else row], source_etype=self.vector)

    def beside(self) -> None:
        """Output channels that lie together in memory, a vector at a time; or at any distance, one by one."""
        b, read = self.builder, self.read
        with loop(b, i64(0), read["taps"]) as tap, loop(b, i64(0), read["depth"]) as channel:
            source = at(b, at(b, self.from_, self.offset(tap)), b.mul(channel, read["row.stride"]))
            place = self.place(tap, channel)
            if self.way == "scattered":
                self._one_by_one(source, place)
            elif self.packs:
                self.write(place, intrinsic(b, "masked.load", self.vector, [
                    source, self.align, self.kept, number(0, self.vector)], [self.vector, POINTER]))
            else:
                intrinsic(b, "masked.store", ir.VoidType(), [self.total(place), source, self.align, self.kept],
                          [self.vector, POINTER])

    def _one_by_one(self, source: Any, place: Any) -> None:
        b, read = self.builder, self.read
        b.store(number(0, self.vector) if self.packs else self.total(place), self.each(0), align=self.size)
        with loop(b, i64(0), self.count) as lane:
            outside = at(b, source, b.mul(lane, read["lane.stride"]))
            inside = b.gep(self.square, [lane], source_etype=self.kind)
            first, second = (outside, inside) if self.packs else (inside, outside)
            b.store(b.load(first, typ=self.kind, align=self.size), second, align=self.size)
        if self.packs:
            self.write(place, b.load(self.each(0), typ=self.vector, align=self.size))

    def turned(self) -> None:
        """Rows of elements that lie together for each output channel, in square blocks."""
        b, read = self.builder, self.read
        by_channel = self.way == "channels turned"  # rows are taps, and elements input channels
        columns = read["depth"] if by_channel else b.mul(read["inside"], read["taps"])
        last = b.sub(self.count, i64(1))
        tap, channel = local(b, I64), local(b, I64)
        with loop(b, i64(0), read["rows"]) as row:
            offset = self.offset(row) if by_channel else b.mul(row, read["row.stride"])
            source = at(b, self.from_, offset)
            b.store(row if by_channel else i64(0), tap)
            b.store(i64(0) if by_channel else row, channel)
            with loop(b, i64(0), columns, self.lanes) as first:
                some = smaller(b, b.sub(columns, first), i64(self.lanes))
                mask = first_lanes(b, some, self.lanes)
                rows = [at(b, source, b.add(b.mul(smaller(b, i64(i), last), read["lane.stride"]),
                                            b.mul(first, i64(self.size)))) for i in range(self.lanes)]
                if self.packs:
                    for i, vector in enumerate(turned(b, [intrinsic(b, "masked.load", self.vector, [
                            each, self.align, mask, number(0, self.vector)], [self.vector, POINTER])
                            for each in rows])):
                        b.store(vector, self.each(i), align=self.size)
                with loop(b, i64(0), some) as i:
                    here = self.place(b.load(tap, typ=I64), b.load(channel, typ=I64))
                    if self.packs:
                        self.write(here, b.load(self.each(i), typ=self.vector, align=self.size))
                    else:
                        b.store(self.total(here), self.each(i), align=self.size)
                    self._next(tap, channel)
                if not self.packs:
                    columns_ = [b.load(self.each(i), typ=self.vector, align=self.size) for i in range(self.lanes)]
                    for i, (place, vector) in enumerate(zip(rows, turned(b, columns_), strict=True)):
                        with b.if_then(b.icmp_signed("<", i64(i), self.count)):
                            intrinsic(b, "masked.store", ir.VoidType(), [vector, place, self.align, mask],
                                      [self.vector, POINTER])

    def _next(self, tap: Any, channel: Any) -> None:
        b = self.builder
        if self.way == "channels turned":
            b.store(b.add(b.load(channel, typ=I64), i64(1)), channel)
            return
        following = b.add(b.load(tap, typ=I64), i64(1))
        over = b.icmp_signed("==", following, self.read["taps"])
        b.store(b.select(over, i64(0), following), tap)
        b.store(b.add(b.load(channel, typ=I64), b.zext(over, I64)), channel)


def _generate(name: str, dtype: np.dtype, lanes: int, kind: str) -> str:
    module = ir.Module(name)
    panel = _Writer(module, name == "pack", dtype, lanes, kind).function
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = function.args
    read = {key: word(b, plan, i) for i, key in enumerate(PLAN)}
    weights, scratch = (b.load(b.gep(pointers, [read[key]], source_etype=POINTER), typ=POINTER)
                        for key in ("weights", "scratch"))
    panels = at(b, scratch, read["before"])
    elements = b.mul(b.mul(read["taps"], read["depth"]), i64(lanes * dtype.itemsize))
    first = b.mul(chunk, read["share"])
    with loop(b, first, smaller(b, b.add(first, read["share"]), read["jobs"])) as job:
        group, index = b.udiv(job, read["panels"]), b.urem(job, read["panels"])
        vectors = b.add(b.mul(group, read["vectors"]), b.mul(index, read["panel"]))
        b.call(panel, [plan, weights, at(b, panels, b.mul(vectors, elements)), group, index])
    b.ret_void()
    return str(module)
