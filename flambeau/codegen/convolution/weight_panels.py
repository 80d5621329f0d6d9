"""Weight packing: panels of vectors over output channels, one row per tap and input channel.

Panel p of a group holds vectors p · V, p · V + 1, ..., V of them or the remainder. Its rows are the taps, in the order
in which the convolution reads them, and within a tap the input channels. Vectors are zero-padded behind the last output
channel. `pack` writes panels. `combine` adds up the pieces of a weight gradient and unpacks the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import compilation
from ...runtime.launch import ALIGNMENT, Launch, Preparation
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, first_lanes, i64, local, loop, smaller, stack_block, word
from ..llvm.lowering import constant, intrinsic, memory_type
from .transpose import transposed

#: plan fields: pointer indices; the panels' offset in scratch memory; output channels of a group, their vectors, and
#: vectors of a panel; strides by output channel and by group; contiguous rows per output channel, their stride, and
#: input channels per row; taps; input channels; pieces to add up and their stride; panels per group, in all, per chunk
PLAN = ("weights", "scratch", "before", "width", "vectors", "panel", "lane.stride", "group.stride", "rows",
        "row.stride", "inside", "taps", "depth", "pieces", "piece.stride", "panels", "jobs", "share")

#: `panel`, which packs or combines one: plan, weights, the panel, its group and its index
PANEL = ir.FunctionType(ir.VoidType(), [POINTER] * 3 + [I64] * 2)

#: minimum elements of a chunk
GRAIN = 1 << 14


class Weights:
    """The layout of weights in memory and in panels.

    Args:
        lane, group, channel: strides in bytes, by output channel, group and input channel.
        taps: byte offset of each tap.
        places: index of each tap in the panels.
        panel: vectors of a panel.
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
            self.kind = "contiguous"
        elif dense and (len(taps) > 1 or channel != size):
            self.kind = "transposed"
        else:
            self.kind = "channels transposed" if channel == size else "scattered"

    @property
    def bytes(self) -> int:
        """Bytes of all panels."""
        return self.groups * self.vectors * self.lanes * len(self.taps) * self.depth * self.dtype.itemsize

    @property
    def panels(self) -> int:
        """Panels of a group."""
        return -(-self.vectors // self.panel)

    def words(self, weights: int = 0, scratch: int = 0, before: int = 0, pieces: int = 1) -> tuple[int, ...]:
        """The plan; `weights` and `scratch` are pointer indices."""
        size = self.dtype.itemsize
        dense = self.channel == len(self.taps) * size  # input channels and taps are contiguous
        rows, inside = (1, self.depth) if dense and self.kind == "transposed" else (self.depth, 1)
        if self.kind == "channels transposed":
            rows = len(self.taps)
        share = max(1, GRAIN // max(1, self.lanes * self.panel * len(self.taps) * self.depth))
        return (weights, scratch, before, self.width, self.vectors, self.panel, self.lane, self.group, rows,
                self.channel, inside, len(self.taps), self.depth, pieces, -(-self.bytes // ALIGNMENT) * ALIGNMENT,
                self.panels,
                self.groups * self.panels, share, *self.places, *self.taps)

    def library(self, name: str) -> compilation.Library:
        """The compiled "pack" or "combine": `panel` and `body`."""
        return compilation.load(f"convolution {name} {self.dtype} {self.lanes} {self.kind}", ("panel", "body"),
                             lambda: _generate(name, self.dtype, self.lanes, self.kind), "few")

    def launch(self, name: str, weights: int, scratch: int, before: int, pieces: int = 1) -> Launch:
        """The launch that packs or combines all panels."""
        words, library = self.words(weights, scratch, before, pieces), self.library(name)
        share = words[PLAN.index("share")]
        preparation = Preparation(weights, before, before + self.bytes) if name == "pack" else None
        return Launch(library, library.symbol("body"), -(-self.groups * self.panels // share), words,
                      preparation=preparation)


class _Emitter:
    """Generates `panel`."""

    def __init__(self, module: ir.Module, packs: bool, dtype: np.dtype, lanes: int, layout: str) -> None:
        self.packs, self.dtype, self.lanes, self.layout = packs, dtype, lanes, layout
        self.function, self.builder = kernel_entry.begin(module, "panel", PANEL)
        self.kind, self.size = memory_type(dtype), dtype.itemsize
        self.vector = ir.VectorType(self.kind, lanes)
        self.align = ir.Constant(I32, self.size)
        self.plan, weights, panel, group, number_ = self.function.args
        b = self.builder
        self.read = {key: word(b, self.plan, i) for i, key in enumerate(PLAN)}
        self.square = stack_block(b, dtype, lanes * lanes)
        width = lanes * self.size
        first = b.mul(number_, self.read["panel"])
        vectors = smaller(b, self.read["panel"], b.sub(self.read["vectors"], first))
        self.pitch = b.mul(vectors, i64(width))
        self.tap_pitch = b.mul(self.pitch, self.read["depth"])
        base = at(b, weights, b.mul(group, self.read["group.stride"]))
        with loop(b, i64(0), vectors) as index:
            before = b.mul(b.add(first, index), i64(lanes))
            self.count = smaller(b, b.sub(self.read["width"], before), i64(lanes))
            self.mask = first_lanes(b, self.count, lanes)
            self.from_ = at(b, base, b.mul(before, self.read["lane.stride"]))
            self.to = at(b, panel, b.mul(index, i64(width)))
            if layout in ("transposed", "channels transposed"):
                self.transposed()
            else:
                self.by_vector()
        b.ret_void()

    def place(self, tap: Any, channel: Any) -> Any:
        """The address in the panel of the vector of a tap and an input channel."""
        b = self.builder
        before = b.mul(word(b, self.plan, b.add(i64(len(PLAN)), tap)), self.tap_pitch)
        return at(b, self.to, b.add(before, b.mul(channel, self.pitch)))

    def offset(self, tap: Any) -> Any:
        """The byte offset of a tap in the weights."""
        b = self.builder
        return word(b, self.plan, b.add(b.add(i64(len(PLAN)), self.read["taps"]), tap))

    def write(self, place: Any, vector: Any) -> None:
        """Store a vector in the panel, zero behind the last output channel."""
        zero = constant(0, self.vector)
        self.builder.store(self.builder.select(self.mask, vector, zero), place, align=self.size)

    def total(self, place: Any) -> Any:
        """The sum of the vectors at the same offset of all pieces."""
        b, read = self.builder, self.read
        total, here = local(b, self.vector), local(b, POINTER)
        b.store(b.load(place, typ=self.vector, align=self.size), total)
        b.store(place, here)
        with loop(b, i64(1), read["pieces"]):
            following = at(b, b.load(here, typ=POINTER), read["piece.stride"])
            b.store(following, here)
            b.store(b.fadd(b.load(total, typ=self.vector), b.load(following, typ=self.vector, align=self.size)), total)
        return b.load(total, typ=self.vector)

    def square_row(self, row: Any) -> Any:
        """The address of a row of the square block."""
        return self.builder.gep(self.square, [i64(row) if isinstance(row, int) else row], source_etype=self.vector)

    def by_vector(self) -> None:
        """Pack or unpack contiguous output channels by vectors, or strided ones element by element."""
        b, read = self.builder, self.read
        with loop(b, i64(0), read["taps"]) as tap, loop(b, i64(0), read["depth"]) as channel:
            source = at(b, at(b, self.from_, self.offset(tap)), b.mul(channel, read["row.stride"]))
            place = self.place(tap, channel)
            if self.layout == "scattered":
                self._one_by_one(source, place)
            elif self.packs:
                self.write(place, intrinsic(b, "masked.load", self.vector, [
                    source, self.align, self.mask, constant(0, self.vector)], [self.vector, POINTER]))
            else:
                intrinsic(b, "masked.store", ir.VoidType(), [self.total(place), source, self.align, self.mask],
                          [self.vector, POINTER])

    def _one_by_one(self, source: Any, place: Any) -> None:
        b, read = self.builder, self.read
        b.store(constant(0, self.vector) if self.packs else self.total(place), self.square_row(0), align=self.size)
        with loop(b, i64(0), self.count) as lane:
            outside = at(b, source, b.mul(lane, read["lane.stride"]))
            inside = b.gep(self.square, [lane], source_etype=self.kind)
            first, second = (outside, inside) if self.packs else (inside, outside)
            b.store(b.load(first, typ=self.kind, align=self.size), second, align=self.size)
        if self.packs:
            self.write(place, b.load(self.square_row(0), typ=self.vector, align=self.size))

    def transposed(self) -> None:
        """Pack or unpack rows that are contiguous for each output channel, in transposed square blocks."""
        b, read = self.builder, self.read
        by_channel = self.layout == "channels transposed"  # rows are taps, and elements input channels
        columns = read["depth"] if by_channel else b.mul(read["inside"], read["taps"])
        last = b.sub(self.count, i64(1))
        tap, channel = local(b, I64), local(b, I64)
        with loop(b, i64(0), read["rows"]) as row:
            offset = self.offset(row) if by_channel else b.mul(row, read["row.stride"])
            source = at(b, self.from_, offset)
            b.store(row if by_channel else i64(0), tap)
            b.store(i64(0) if by_channel else row, channel)
            with loop(b, i64(0), columns, self.lanes) as first:
                count = smaller(b, b.sub(columns, first), i64(self.lanes))
                mask = first_lanes(b, count, self.lanes)
                rows = [at(b, source, b.add(b.mul(smaller(b, i64(i), last), read["lane.stride"]),
                                            b.mul(first, i64(self.size)))) for i in range(self.lanes)]
                if self.packs:
                    for i, vector in enumerate(transposed(b, [intrinsic(b, "masked.load", self.vector, [
                            each, self.align, mask, constant(0, self.vector)], [self.vector, POINTER])
                            for each in rows])):
                        b.store(vector, self.square_row(i), align=self.size)
                with loop(b, i64(0), count) as i:
                    here = self.place(b.load(tap, typ=I64), b.load(channel, typ=I64))
                    if self.packs:
                        self.write(here, b.load(self.square_row(i), typ=self.vector, align=self.size))
                    else:
                        b.store(self.total(here), self.square_row(i), align=self.size)
                    self._next(tap, channel)
                if not self.packs:
                    columns_ = [b.load(self.square_row(i), typ=self.vector, align=self.size) for i in range(self.lanes)]
                    for i, (place, vector) in enumerate(zip(rows, transposed(b, columns_), strict=True)):
                        with b.if_then(b.icmp_signed("<", i64(i), self.count)):
                            intrinsic(b, "masked.store", ir.VoidType(), [vector, place, self.align, mask],
                                      [self.vector, POINTER])

    def _next(self, tap: Any, channel: Any) -> None:
        """Advance to the next element of a row: the next channel, or the next tap."""
        b = self.builder
        if self.layout == "channels transposed":
            b.store(b.add(b.load(channel, typ=I64), i64(1)), channel)
            return
        following = b.add(b.load(tap, typ=I64), i64(1))
        over = b.icmp_signed("==", following, self.read["taps"])
        b.store(b.select(over, i64(0), following), tap)
        b.store(b.add(b.load(channel, typ=I64), b.zext(over, I64)), channel)


def _generate(name: str, dtype: np.dtype, lanes: int, kind: str) -> str:
    module = ir.Module(name)
    panel = _Emitter(module, name == "pack", dtype, lanes, kind).function
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
