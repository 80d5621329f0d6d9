"""Correlations of few input channels whose rows are contiguous: vectors over positions.

The other methods compute vectors of channels and transpose them. With few products per result that takes longer than
the products. Here a tile is output channels × vectors of positions: a vector of the source is loaded once for all
channels of the tile, a weight is one scalar. The last vector of a row ends with the row and may compute some positions
again, so nothing but broadcast arrays may enter the epilogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from ...kernels import threads as limits
from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from ...runtime.symbolic_integers import typical
from ..llvm import kernel_entry
from ..llvm.loop_nests import POINTER, at, i64, local, loop, order_after, smaller
from ..llvm.lowering import constant, memory_type, splat
from ..scalar.scalar_ir import Node
from . import input_packing, scratch_slots
from .blocking import MIN_CHUNK_WORK, balanced_size, input_extent
from .correlation import Images, aligned
from .epilogue import Epilogue, operands
from .geometry import Correlation
from .input_packing import FILL
from .plan import PlanLayout
from .plan_fields import Callee, Plan
from .register_tile import multiply_add, registers
from .weight_panels import Weights

#: most input channels, products per result, taps along a row, and positions of a row
MAX_CHANNELS, MAX_PRODUCTS, MAX_TAPS, MAX_WIDTH = 3, 100, 11, 1 << 11
#: fewest output channels
MIN_OUT_CHANNELS = 4
#: most vectors of a tile, bytes of the narrowest vector
MAX_VECTORS, NARROWEST = 3, 16
#: maximum bytes of a block's source (a share of L1), and chunks aimed at
SOURCE_BYTES, CHUNKS = 1 << 14, 16

#: positions and their blocks; channels, their blocks and those of a tile; pointer indices and scratch offsets; code
#: addresses; the source's strides and the step between rows; sizes and pitches of the copied source; pitches of taps in
#: it; starts of the operands' strides and of `fill`'s fields
ROW_CORRELATION = PlanLayout("""
    batch images.chunk rows.chunk row.blocks height width groups channels channel.blocks
    source scratch panels.from slots slots.at slot.bytes panels.at panel.bytes fill
    source.n source.c step.h first.h first.w span.h copy.width copy.pitch copy.plane
    taps.h taps.h.pitch taps.w.pitch
    operands.at fill_fields.at
""")


def fits(problem: Correlation, source: Images, arrays: Sequence[Images], outputs: int) -> bool:
    """Whether this method is possible and estimated to be the fastest.

    Args:
        source, arrays: the layouts of the source, of the outputs, and of the epilogue's other arrays.
        outputs: the number of outputs.
    """
    if len(problem.phases) != 1 or problem.target_step != (1, 1, 1) or problem.groups != 1 or not all(problem.grid):
        return False
    taps, width, size = problem.kernel, problem.grid[2], source.dtype.itemsize
    products = prod(taps) * problem.in_channels
    if (problem.grid[0] > 1 or taps[0] > 1 or taps[2] > MAX_TAPS or problem.source_step[2] != 1
            or products > MAX_PRODUCTS or not NARROWEST // size <= width <= MAX_WIDTH):
        return False
    if problem.in_channels > MAX_CHANNELS or problem.out_channels < MIN_OUT_CHANNELS:
        return False
    if len(problem.phases[0].kernel) != prod(taps):
        return False
    return (source.w == size and all(each.w == each.dtype.itemsize for each in arrays[:outputs])
            and all(each.w == 0 for each in arrays[outputs:]))


class RowCorrelation:
    """Plans the launches of a correlation.

    Args:
        problem: the correlation.
        nodes: the epilogue's expressions, one per output.
        source, operands: the arrays; operands are outputs, then the epilogue's other arrays.
    """

    def __init__(self, problem: Correlation, nodes: tuple[Node, ...], source: Images, operands: Sequence[Images]
                 ) -> None:
        self.problem, self.nodes, self.source, self.operands = problem, nodes, source, operands
        self.dtype, self.size = source.dtype, source.dtype.itemsize
        _, self.height, self.width = problem.grid
        self.lanes = target.host().vector_bits // 8 // self.size
        while self.lanes > self.width:
            self.lanes //= 2
        vectors = -(-self.width // self.lanes)
        self.vectors = -(-vectors // -(-vectors // MAX_VECTORS))
        self.row_groups = -(-vectors // self.vectors)
        fitting = (registers() - self.vectors - 1) // self.vectors
        self.channels = 8 if fitting >= 8 and problem.out_channels > 4 else 4
        self.span = [high - low + 1 for low, high in zip(problem.min_offset, problem.max_offset, strict=True)]
        self._choose_blocks()

    def _choose_blocks(self) -> None:
        """Choose the rows and images of a chunk, and the layout of the copy of its source."""
        problem, step = self.problem, self.problem.source_step[1]
        self.copy_width = input_extent(self.width, 1, self.span[2])
        self.pitch = -(-self.copy_width * self.size // 16) * 16
        pitch, height = typical(self.pitch), typical(self.height)
        rows = max(1, (SOURCE_BYTES // (problem.in_channels * pitch) - self.span[1]) // step + 1)
        batch = typical(problem.batch)
        wanted = max(1, min(max(CHUNKS, 2 * limits.count()), typical(problem.multiplications) // MIN_CHUNK_WORK))
        rows = balanced_size(height, rows)
        blocks = -(-height // rows)
        images = balanced_size(batch, max(1, batch * blocks // wanted))
        if images == 1 and blocks * batch < wanted:
            rows = balanced_size(height, max(1, height * batch // wanted))
        self.block, self.images = rows, images
        self.blocks = -(-self.height // rows)
        self.plane = aligned(input_extent(rows, step, self.span[1]) * self.pitch)
        self.copy_bytes = problem.in_channels * self.plane

    def launches(self, w: Spec, lane: int, group: int, channel: int) -> list[Launch]:
        """The launches, for weights with these strides by target channel, group and source channel."""
        problem = self.problem
        kernel = problem.phases[0].kernel
        taps = [sum(i * s for i, s in zip(index, w.strides[2:], strict=True)) for index in np.ndindex(w.shape[2:])]
        dilation = [(high - low) // max(1, count - 1) for low, high, count in
                    zip(problem.min_offset, problem.max_offset, problem.kernel, strict=True)]
        place = {tap: i for i, tap in enumerate(kernel)}
        weights = Weights(self.dtype, self.channels, problem.out_channels, problem.in_channels, 1, lane, group, channel,
                          taps, [place[i] for i in range(len(taps))], 1)
        chunks = -(-problem.batch // self.images) * self.blocks
        slots = scratch_slots.count(chunks)
        slots_at = aligned(scratch_slots.HEADER + weights.bytes)
        count, scratch = len(self.nodes), len(self.operands) + 2
        operands_at = ROW_CORRELATION.end
        strides = [word for each in self.operands for word in (*each.outer, each.c)]
        fields = input_packing.fill_fields(problem.source_sizes, self.source.outer, self.size, 1,
                                           (0, 0, self.pitch, self.size))
        body = library(self)
        fill = input_packing.library(self.dtype, input_packing.kind(1, self.size, self.size, self.size))
        plan = ROW_CORRELATION.plan({
            "batch": problem.batch, "images.chunk": self.images, "rows.chunk": self.block, "row.blocks": self.blocks,
            "height": self.height, "width": self.width, "groups": self.row_groups,
            "channels": problem.out_channels, "channel.blocks": -(-problem.out_channels // self.channels),
            "source": count, "scratch": scratch, "panels.from": scratch, "slots": slots, "slots.at": slots_at,
            "slot.bytes": self.copy_bytes, "panels.at": scratch_slots.HEADER,
            "panel.bytes": self.channels * self.size * len(taps) * problem.in_channels, "fill": fill.symbol("fill"),
            "source.n": self.source.n, "source.c": self.source.c, "step.h": problem.source_step[1],
            "first.h": problem.min_offset[1], "first.w": problem.min_offset[2],
            "span.h": self.span[1], "copy.width": self.copy_width, "copy.pitch": self.pitch, "copy.plane": self.plane,
            "taps.h": problem.kernel[1], "taps.h.pitch": dilation[1] * self.pitch,
            "taps.w.pitch": dilation[2] * self.size, "operands.at": operands_at,
            "fill_fields.at": operands_at + len(strides),
        }, *strides, *fields)
        return [scratch_slots.initializing(scratch, slots),
                weights.launch("pack", count + 1, scratch, scratch_slots.HEADER),
                Launch(body, body.symbol("body"), chunks, plan, 0, slots_at + slots * self.copy_bytes,
                       prepared=(ROW_CORRELATION.places["panels.from"],))]

    def epilogue(self) -> Epilogue:
        """The expressions, over vectors of positions."""
        steps = "".join(each.steps_along(each.w) for each in self.operands)
        return Epilogue(self.nodes, tuple(each.dtype for each in self.operands), steps, self.dtype)


def library(correlation: RowCorrelation) -> compilation.Library:
    """The compiled `body`."""
    c, epilogue = correlation, correlation.epilogue()
    shape = c.channels, c.vectors, c.lanes, c.problem.kernel[2], c.problem.in_channels
    return compilation.load(f"convolution rows {c.dtype} {' '.join(map(str, shape))} {epilogue.recipe}", ("body",),
                            lambda: _Body(c.dtype, *shape, epilogue).text, "few")


class _Body:
    """Generates `body`."""

    def __init__(self, dtype: np.dtype, channels: int, vectors: int, lanes: int, taps: int, depth: int,
                 epilogue: Epilogue) -> None:
        self.dtype, self.size = dtype, dtype.itemsize
        self.channels, self.vectors, self.lanes = channels, vectors, lanes
        self.taps, self.depth, self.epilogue = taps, depth, epilogue
        self.vector = ir.VectorType(memory_type(dtype), lanes)
        module = ir.Module("rows")
        function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        self.builder = b
        self.pointers, words, chunk = function.args
        plan = self.plan = Plan(b, words, ROW_CORRELATION)
        self.read = {name: plan[name] for name in (
            "height", "width", "channels", "step.h", "copy.pitch", "copy.plane", "copy.width", "taps.h", "taps.h.pitch",
            "taps.w.pitch", "groups", "first.h", "first.w", "span.h")}
        images, block = b.udiv(chunk, plan["row.blocks"]), b.urem(chunk, plan["row.blocks"])
        self.first_row = b.mul(block, plan["rows.chunk"])
        self.row_count = smaller(b, plan["rows.chunk"], b.sub(plan["height"], self.first_row))
        scratch = self._pointer("scratch")
        slot = scratch_slots.Slot(b, scratch, plan)
        self.copy = slot.place
        first_image = b.mul(images, plan["images.chunk"])
        end_image = smaller(b, b.add(first_image, plan["images.chunk"]), plan["batch"])
        source, panels = self._pointer("source"), self._pointer("panels.from")
        with loop(b, first_image, end_image) as image:
            here = at(b, source, b.mul(image, plan["source.n"]))
            for c in range(depth):
                self._fill(at(b, self.copy, b.mul(self.read["copy.plane"], i64(c))),
                           at(b, here, b.mul(plan["source.c"], i64(c))))
            with loop(b, i64(0), plan["channel.blocks"]) as number:
                self.factors = at(b, at(b, panels, plan["panels.at"]), b.mul(plan["panel.bytes"], number))
                self._channels(image, b.mul(number, i64(channels)))
        slot.release(b)
        b.ret_void()
        self.text = str(module)

    def _pointer(self, name: str) -> Any:
        b = self.builder
        return b.load(b.gep(self.pointers, [self.plan[name]], source_etype=POINTER), typ=POINTER)

    def _fill(self, to: Any, plane: Any) -> None:
        """Copy a plane's rows of this chunk, with zeros around it."""
        b, plan, read = self.builder, self.plan, self.read
        first = b.add(b.mul(self.first_row, read["step.h"]), read["first.h"])
        count = b.add(b.mul(b.sub(self.row_count, i64(1)), read["step.h"]), read["span.h"])
        b.call(Callee(b, plan["fill"], FILL), [to, plane, plan.list("fill_fields.at"), i64(1), i64(0), i64(1), first,
                                               count, read["first.w"], read["copy.width"]])

    def _channels(self, image: Any, channel: Any) -> None:
        """Compute all rows of a block of channels."""
        b, read = self.builder, self.read
        self.strides, bases = operands(b, self.plan, self.pointers, self.epilogue, channel)
        bases = [at(b, base, b.mul(image, each[0])) for base, each in zip(bases, self.strides, strict=True)]
        present = b.sub(read["channels"], channel)
        with loop(b, i64(0), self.row_count) as row, loop(b, i64(0), read["groups"]) as group:
            begin = b.mul(group, i64(self.vectors * self.lanes))
            last = b.sub(read["width"], i64(self.lanes))
            places = [smaller(b, b.add(begin, i64(v * self.lanes)), last) for v in range(self.vectors)]
            sums = self._sums(row, places)
            h = b.add(self.first_row, row)
            rows = [at(b, base, b.mul(h, each[2])) for base, each in zip(bases, self.strides, strict=True)]
            for c in range(self.channels):
                with b.if_then(b.icmp_signed(">", present, i64(c))):
                    here = [at(b, base, b.mul(each[4], i64(c))) for base, each in zip(rows, self.strides, strict=True)]
                    for v, place in enumerate(places):
                        value = b.load(sums[c * self.vectors + v], typ=self.vector)
                        self.epilogue.finish(b, value, here, [each[3] for each in self.strides], place, self.lanes)

    def _sums(self, row: Any, places: list[Any]) -> list[Any]:
        """The sums of a tile, as stack variables, by channel and vector."""
        b, read = self.builder, self.read
        sums = [local(b, self.vector) for _ in range(self.channels * self.vectors)]
        for each in sums:
            b.store(constant(0.0, self.vector), each)
        start = at(b, self.copy, b.mul(b.mul(row, read["step.h"]), read["copy.pitch"]))
        bases = [at(b, start, b.mul(place, i64(self.size))) for place in places]
        packed = self.taps * self.depth * self.channels * self.size
        with loop(b, i64(0), read["taps.h"]) as tap_row:
            shift = b.mul(tap_row, read["taps.h.pitch"])
            factors = at(b, self.factors, b.mul(tap_row, i64(packed)))
            pointers = [factors, *(at(b, base, shift) for base in bases)]
            for tap in range(self.taps):
                across = b.mul(read["taps.w.pitch"], i64(tap))
                for c in range(self.depth):
                    if tap or c:  # keep LLVM from hoisting the loads of two steps: it would run out of registers
                        pointers = order_after(b, pointers, [b.load(each, typ=self.vector) for each in sums[:4]])
                    offset = b.add(across, b.mul(read["copy.plane"], i64(c)))
                    before = (tap * self.depth + c) * self.channels * self.size
                    self._step(sums, [at(b, each, offset) for each in pointers[1:]],
                               [at(b, pointers[0], before + o * self.size) for o in range(self.channels)])
        return sums

    def _step(self, sums: list[Any], places: list[Any], factors: list[Any]) -> None:
        """Add the products of vectors of the source and one weight for each channel."""
        b = self.builder
        values = [b.load(place, typ=self.vector, align=self.size) for place in places]
        for o, place in enumerate(factors):
            factor = splat(b, b.load(place, typ=memory_type(self.dtype), align=self.size), self.lanes)
            for total, value in zip(sums[o * self.vectors:], values, strict=False):
                b.store(multiply_add(b, value, factor, b.load(total, typ=self.vector)), total)


__all__ = ["ROW_CORRELATION", "RowCorrelation", "fits", "library"]
