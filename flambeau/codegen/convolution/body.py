"""The body of convolution kernels: one chunk computes a block of positions for some panels of output channels.

Where necessary, the block's part of the source is first copied with its padding into a scratch slot. Then each panel's
sums are computed part by part and stored, or buffered and flushed.

With Winograd, positions are tiles of 2 × 2 outputs, and all tiles of the block are transformed first
(`winograd/tile_transform.py`). Flagged tiles and panels, whose transforms overflow, are computed directly by a second
plan, the fallback.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from llvmlite import ir

from ...runtime import compilation
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, i64, local, loop, smaller, word
from . import chunks, scratch_slots
from .chunks import Indices
from .epilogue import FLUSH
from .panel_pass import PANEL_PASS
from .plan import CORRELATION
from .plan_fields import Callee, Plan
from .weight_panels import PANEL
from .winograd.tile_transform import POINTS, TRANSFORM


def library() -> compilation.Library:
    """The compiled `body`."""
    return compilation.load("convolution body", ("body",), lambda: _Body().text, "few")


class _Body:
    """Generates `body`."""

    def __init__(self) -> None:
        module = ir.Module("body")
        function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        self.builder = b
        self.pointers, self.words, chunk = function.args
        plan = self.plan = Plan(b, self.words, CORRELATION)
        self.fallback = Plan(b, plan.list("fallback.at"), CORRELATION)
        self.winograd = b.icmp_signed("!=", plan["transform"], i64(0))
        self.scratch = self._pointer("scratch")
        self.first, self.count = chunks.block(b, plan, b.udiv(chunk, plan["splits"]))
        split = b.urem(chunk, plan["splits"])
        slot = scratch_slots.Slot(b, self.scratch, plan)
        self.slot = slot.place
        region = chunks.input_region(b, plan, self.first, self.count)
        self.images = chunks.block_pointer(b, plan, self._pointer("source"), ("fill", "fill_fields.at", "read"),
                                           self.first,
                                           self.count["n"], region, self.slot)
        self._transform_tiles()
        first = b.mul(split, plan["share"])
        with loop(b, first, smaller(b, b.add(first, plan["share"]), plan["jobs"])) as job:
            self._job(job)
        slot.release(b)
        b.ret_void()
        self.text = str(module)

    def _pointer(self, name: str) -> Any:
        b = self.builder
        return b.load(b.gep(self.pointers, [self.plan[name]], source_etype=POINTER), typ=POINTER)

    def _transform_tiles(self) -> None:
        """Set `source` to the block's source or its transformed tiles, and `flagged` to the number of flagged tiles."""
        b, plan = self.builder, self.plan
        source, self.flagged = local(b, POINTER), local(b, I64)
        b.store(self.images, source)
        b.store(i64(0), self.flagged)
        with b.if_then(self.winograd):
            points = at(b, self.slot, plan["points.at"])
            counts = [self.count[axis] for axis in "ndhw"]
            flagged = b.call(Callee(b, plan["transform"], TRANSFORM), [plan.list("transform.at"), self.images, points,
                                                                       *counts])
            b.store(flagged, self.flagged)
            b.store(points, source)
        self.source = b.load(source, typ=POINTER)

    def _job(self, job: Any) -> None:
        """One panel of channels at all positions of the block."""
        b, plan = self.builder, self.plan
        group, number = b.udiv(job, plan["panels"]), b.urem(job, plan["panels"])
        self.last = b.icmp_signed("==", number, b.sub(plan["panels"], i64(1)))
        self.panel, self.panel_flagged = self._panel(group, number), self._is_flagged(job)
        within = b.mul(number, plan["panel.channels"])
        self.channel = b.add(b.mul(group, plan["out_channels"]), within)
        self.channels = smaller(b, plan["panel.channels"], b.sub(plan["out_channels"], within))
        # along a row the last part includes the remainder, so that it is never narrower than a tile
        covered = b.sub(b.add(self.count["w"], b.sub(plan["part.w"], i64(1))), plan["min_last_part"])
        parts = b.udiv(covered, plan["part.w"])
        parts = b.select(b.icmp_signed("<", covered, plan["part.w"]), i64(1), parts)
        offsets: Indices = {}
        counts: Indices = {}
        with ExitStack() as nest:
            for axis in "ndh":
                offsets[axis] = nest.enter_context(loop(b, i64(0), self.count[axis], plan[f"part.{axis}"]))
                counts[axis] = smaller(b, plan[f"part.{axis}"], b.sub(self.count[axis], offsets[axis]))
            index = nest.enter_context(loop(b, i64(0), parts))
            offsets["w"] = b.mul(index, plan["part.w"])
            left = b.sub(self.count["w"], offsets["w"])
            counts["w"] = b.select(b.icmp_signed("==", index, b.sub(parts, i64(1))), left, plan["part.w"])
            self._part(group, number, offsets, counts)

    def _panel(self, group: Any, number: Any) -> Any:
        """The address of the panel's weights, which are packed now unless they were packed beforehand."""
        b, plan = self.builder, self.plan
        result = local(b, POINTER)
        with b.if_else(b.icmp_signed("!=", plan["pack"], i64(0))) as (now, before):
            with now:
                place = at(b, self.slot, plan["packed.at"])
                weights = self._pointer("weights")
                b.call(Callee(b, plan["pack"], PANEL), [plan.list("pack.at"), weights, place, group, number])
                b.store(place, result)
            with before:
                b.store(self._packed(plan, group, number), result)
        return b.load(result, typ=POINTER)

    def _packed(self, plan: Plan, group: Any, number: Any) -> Any:
        """The address of a panel that was packed beforehand, by a plan's fields."""
        b = self.builder
        prepared = b.load(b.gep(self.pointers, [plan["panels.from"]], source_etype=POINTER), typ=POINTER)
        place = at(b, at(b, prepared, plan["panels.at"]), b.mul(group, plan["group.bytes"]))
        return at(b, place, b.mul(number, plan["panel.bytes"]))

    def _moved(self, place: Any, plan: Plan, name: str, indices: Indices) -> Any:
        """The address offset by indices times the strides in the plan's fields `name`."""
        for axis in "ndhw":
            place = at(self.builder, place, self.builder.mul(indices[axis], plan[f"{name}.{axis}"]))
        return place

    def _part(self, group: Any, number: Any, offsets: Indices, counts: Indices) -> None:
        b, plan = self.builder, self.plan
        flush = plan["flush"]
        buffered = b.icmp_signed("!=", flush, i64(0))
        buffer = at(b, self.slot, plan["buffer.at"])
        firsts = {axis: b.add(self.first[axis], offsets[axis]) for axis in "ndhw"}
        target = at(b, self._pointer("target"), b.mul(self.channel, plan["target.c"]))
        target = b.select(buffered, buffer, self._moved(target, plan, "target", firsts))
        outputs = self._outputs(firsts, counts)
        b.call(Callee(b, plan["prefetch"], FLUSH),
               [self.words, self.pointers, buffer, *outputs, self.channel, self.channels])
        source = self._moved(self._first(self.source, plan, group, number), plan, "from", offsets)
        workspace = at(b, self.slot, plan["sums.at"])
        panel_pass = Callee(b, b.select(self.last, plan["panel_pass.last"], plan["panel_pass"]), PANEL_PASS)
        where = [each for axis in "ndhw" for each in (firsts[axis], counts[axis])]
        with b.if_then(b.not_(self.panel_flagged)):
            b.call(panel_pass, [self.words, self.pointers, source, target, self.panel, workspace, *where, self.channel])
        any_flagged = b.icmp_signed("!=", b.load(self.flagged, typ=I64), i64(0))
        with b.if_then(b.or_(self.panel_flagged, any_flagged)):
            self._fallback_part(group, number, target, offsets, counts)
        with b.if_then(buffered):
            b.call(Callee(b, flush, FLUSH),
                   [self.words, self.pointers, buffer, *outputs, self.channel, self.channels])

    def _first(self, source: Any, plan: Plan, group: Any, number: Any) -> Any:
        """The address of the group's first channel, or of the panel's where the convolution is depthwise."""
        b = self.builder
        return at(b, at(b, source, b.mul(group, plan["from.group"])), b.mul(number, plan["from.panel"]))

    def _outputs(self, firsts: Indices, counts: Indices) -> list[Any]:
        """The target positions of this part, over all phases or tiles: first and count by axis."""
        b, plan = self.builder, self.plan
        ranges = [firsts["n"], counts["n"]]
        for axis in "dhw":
            first = b.mul(firsts[axis], plan[f"spread.{axis}"])
            ranges += [first, smaller(b, b.mul(counts[axis], plan[f"spread.{axis}"]),
                                     b.sub(plan[f"size.{axis}"], first))]
        return ranges

    def _is_flagged(self, job: Any) -> Any:
        """Whether the panel is flagged."""
        b = self.builder
        result = local(b, I64)
        b.store(i64(0), result)
        with b.if_then(self.winograd):
            prepared = self._pointer("panels.from")
            b.store(word(b, at(b, prepared, self.plan["flags.at"]), job), result)
        return b.icmp_signed("!=", b.load(result, typ=I64), i64(0))

    def _fallback_part(self, group: Any, number: Any, target: Any, offsets: Indices, counts: Indices) -> None:
        """Compute the part's flagged tiles directly, or all of them for a flagged panel, by the fallback plan."""
        b, plan, fallback = self.builder, self.plan, self.fallback
        words = plan.list("fallback.at")
        panel = self._packed(fallback, group, number)
        panel_pass = Callee(b, b.select(self.last, fallback["panel_pass.last"], fallback["panel_pass"]), PANEL_PASS)
        images = self._first(self.images, fallback, group, number)
        with ExitStack() as nest:
            indices = {axis: nest.enter_context(loop(b, i64(0), counts[axis])) for axis in "ndhw"}
            within = {axis: b.add(offsets[axis], indices[axis]) for axis in "ndhw"}
            flag = at(b, self._moved(self.source, plan, "from", within), b.mul(plan["point.bytes"], i64(POINTS)))
            flagged = b.icmp_signed("!=", b.load(flag, typ=I32), ir.Constant(I32, 0))
            with b.if_then(b.or_(self.panel_flagged, flagged)):
                firsts = {axis: b.add(self.first[axis], within[axis]) for axis in "ndhw"}
                for axis in "dhw":
                    within[axis] = b.mul(within[axis], plan[f"spread.{axis}"])
                b.call(panel_pass, [words, self.pointers, self._moved(images, fallback, "from", within),
                               self._moved(target, plan, "target", indices), panel, images,
                               *self._outputs(firsts, dict.fromkeys("ndhw", i64(1))), self.channel])
