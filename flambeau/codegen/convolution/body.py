"""A chunk of a convolution: a block of positions and some panels of channels.

The block's part of the source is copied with its margin, where that is needed, into a slot of scratch memory; then
each panel's sums are computed part by part, and written where they are wanted.

Where sums are Winograd's, positions are tiles of 2 × 2, and the points of all tiles of the block are made first
(`convolution_winograd_points`). Tiles that are marked, and panels that are, are computed by a second plan, as sums.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from llvmlite import ir

from ...runtime import compilation
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, i64, local, loop, smaller, word
from . import chunks as convolution_chunks
from . import scratch_slots
from .chunks import Places
from .epilogue import FLUSH
from .panel_pass import SWEEP
from .plan import CORRELATION
from .plan_fields import Callee, Plan
from .weight_panels import PANEL
from .winograd.tile_transform import MAKING, POINTS


def library() -> compilation.Library:
    """The compiled chunk."""
    return compilation.load("convolution body", ("body",), lambda: _Body().text, "few")


class _Body:
    """Writes `body`."""

    def __init__(self) -> None:
        module = ir.Module("body")
        function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        self.builder = b
        self.pointers, self.words, chunk = function.args
        plan = self.plan = Plan(b, self.words, CORRELATION)
        self.plainly = Plan(b, plan.list("plainly.at"), CORRELATION)
        self.winograd = b.icmp_signed("!=", plan["making"], i64(0))
        self.scratch = self._pointer("scratch")
        self.first, self.count = convolution_chunks.block(b, plan, b.udiv(chunk, plan["splits"]))
        split = b.urem(chunk, plan["splits"])
        slot = scratch_slots.Slot(b, self.scratch, plan)
        self.slot = slot.place
        seen = convolution_chunks.seen(b, plan, self.first, self.count)
        self.images = convolution_chunks.brought(b, plan, self._pointer("source"), ("fill", "about.at", "read"),
                                                 self.first, self.count["n"], seen, self.slot)
        self._points()
        first = b.mul(split, plan["share"])
        with loop(b, first, smaller(b, b.add(first, plan["share"]), plan["jobs"])) as job:
            self._job(job)
        slot.give(b)
        b.ret_void()
        self.text = str(module)

    def _pointer(self, name: str) -> Any:
        b = self.builder
        return b.load(b.gep(self.pointers, [self.plan[name]], source_etype=POINTER), typ=POINTER)

    def _points(self) -> None:
        """What sums are made of, the source or its points, and how many tiles are marked."""
        b, plan = self.builder, self.plan
        source, self.marked = local(b, POINTER), local(b, I64)
        b.store(self.images, source)
        b.store(i64(0), self.marked)
        with b.if_then(self.winograd):
            points = at(b, self.slot, plan["points.at"])
            counts = [self.count[axis] for axis in "ndhw"]
            marked = b.call(Callee(b, plan["making"], MAKING), [plan.list("making.at"), self.images, points, *counts])
            b.store(marked, self.marked)
            b.store(points, source)
        self.source = b.load(source, typ=POINTER)

    def _job(self, job: Any) -> None:
        """One panel of channels at all positions of the block."""
        b, plan = self.builder, self.plan
        group, number = b.udiv(job, plan["panels"]), b.urem(job, plan["panels"])
        self.last = b.icmp_signed("==", number, b.sub(plan["panels"], i64(1)))
        self.panel, self.unfit = self._panel(group, number), self._unfit(job)
        within = b.mul(number, plan["panel.channels"])
        self.channel = b.add(b.mul(group, plan["width"]), within)
        self.channels = smaller(b, plan["panel.channels"], b.sub(plan["width"], within))
        # along a row the last part takes what is left, so that it is never too narrow for a tile
        wide = b.sub(b.add(self.count["w"], b.sub(plan["part.w"], i64(1))), plan["least.part"])
        parts = b.udiv(wide, plan["part.w"])
        parts = b.select(b.icmp_signed("<", wide, plan["part.w"]), i64(1), parts)
        offsets: Places = {}
        counts: Places = {}
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
        """Where the panel's weights lie, packed now if nobody has yet."""
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
        """Where the panel lies that was packed before, as a plan says."""
        b = self.builder
        place = at(b, at(b, self.scratch, plan["panels.at"]), b.mul(group, plan["group.bytes"]))
        return at(b, place, b.mul(number, plan["panel.bytes"]))

    def _moved(self, place: Any, plan: Plan, name: str, indices: Places) -> Any:
        """A place so many steps on, of sizes that the plan's words `name` tell."""
        for axis in "ndhw":
            place = at(self.builder, place, self.builder.mul(indices[axis], plan[f"{name}.{axis}"]))
        return place

    def _part(self, group: Any, number: Any, offsets: Places, counts: Places) -> None:
        b, plan = self.builder, self.plan
        flush = plan["flush"]
        buffered = b.icmp_signed("!=", flush, i64(0))
        buffer = at(b, self.slot, plan["buffer.at"])
        firsts = {axis: b.add(self.first[axis], offsets[axis]) for axis in "ndhw"}
        target = at(b, self._pointer("target"), b.mul(self.channel, plan["target.c"]))
        target = b.select(buffered, buffer, self._moved(target, plan, "target", firsts))
        spread = self._spread(firsts, counts)
        b.call(Callee(b, plan["ahead"], FLUSH),
               [self.words, self.pointers, buffer, *spread, self.channel, self.channels])
        source = self._moved(self._first(self.source, plan, group, number), plan, "from", offsets)
        room = at(b, self.slot, plan["sums.at"])
        sweep = Callee(b, b.select(self.last, plan["sweep.last"], plan["sweep"]), SWEEP)
        where = [each for axis in "ndhw" for each in (firsts[axis], counts[axis])]
        with b.if_then(b.not_(self.unfit)):
            b.call(sweep, [self.words, self.pointers, source, target, self.panel, room, *where, self.channel])
        some = b.icmp_signed("!=", b.load(self.marked, typ=I64), i64(0))
        with b.if_then(b.or_(self.unfit, some)):
            self._as_sums(group, number, target, offsets, counts)
        with b.if_then(buffered):
            b.call(Callee(b, flush, FLUSH),
                   [self.words, self.pointers, buffer, *spread, self.channel, self.channels])

    def _first(self, source: Any, plan: Plan, group: Any, number: Any) -> Any:
        """Where the group's channels begin, or the panel's where each is convolved alone."""
        b = self.builder
        return at(b, at(b, source, b.mul(group, plan["from.group"])), b.mul(number, plan["from.panel"]))

    def _spread(self, firsts: Places, counts: Places) -> list[Any]:
        """The positions between this part's phases', or tiles', first and the next part's: first and count by axis."""
        b, plan = self.builder, self.plan
        found = [firsts["n"], counts["n"]]
        for axis in "dhw":
            first = b.mul(firsts[axis], plan[f"spread.{axis}"])
            found += [first, smaller(b, b.mul(counts[axis], plan[f"spread.{axis}"]),
                                     b.sub(plan[f"size.{axis}"], first))]
        return found

    def _unfit(self, job: Any) -> Any:
        """Whether the panel is marked."""
        b = self.builder
        result = local(b, I64)
        b.store(i64(0), result)
        with b.if_then(self.winograd):
            b.store(word(b, at(b, self.scratch, self.plan["marks.at"]), job), result)
        return b.icmp_signed("!=", b.load(result, typ=I64), i64(0))

    def _as_sums(self, group: Any, number: Any, target: Any, offsets: Places, counts: Places) -> None:
        """The part's marked tiles, or all of them, by the second plan."""
        b, plan, plainly = self.builder, self.plan, self.plainly
        words = plan.list("plainly.at")
        panel = self._packed(plainly, group, number)
        sweep = Callee(b, b.select(self.last, plainly["sweep.last"], plainly["sweep"]), SWEEP)
        images = self._first(self.images, plainly, group, number)
        with ExitStack() as nest:
            indices = {axis: nest.enter_context(loop(b, i64(0), counts[axis])) for axis in "ndhw"}
            within = {axis: b.add(offsets[axis], indices[axis]) for axis in "ndhw"}
            mark = at(b, self._moved(self.source, plan, "from", within), b.mul(plan["points"], i64(POINTS)))
            marked = b.icmp_signed("!=", b.load(mark, typ=I32), ir.Constant(I32, 0))
            with b.if_then(b.or_(self.unfit, marked)):
                firsts = {axis: b.add(self.first[axis], within[axis]) for axis in "ndhw"}
                for axis in "dhw":
                    within[axis] = b.mul(within[axis], plan[f"spread.{axis}"])
                b.call(sweep, [words, self.pointers, self._moved(images, plainly, "from", within),
                               self._moved(target, plan, "target", indices), panel, images,
                               *self._spread(firsts, dict.fromkeys("ndhw", i64(1))), self.channel])
