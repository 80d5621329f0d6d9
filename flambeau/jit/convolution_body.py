"""A chunk of a convolution: a block of positions and some panels of channels.

The block's part of the source is copied with its margin, where that is needed, into a slot of scratch memory; then
each panel's sums are computed part by part, and written where they are wanted.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from llvmlite import ir

from . import calling, compiled, convolution_chunks, convolution_slots
from .convolution_panels import PANEL
from .convolution_plan import CORRELATION
from .convolution_store import FLUSH
from .convolution_sweep import SWEEP
from .convolution_words import Callee, Plan
from .loops import POINTER, at, i64, local, loop, smaller


def library() -> compiled.Library:
    """The compiled chunk."""
    return compiled.load("convolution body", ("body",), lambda: _Body().text, "few")


class _Body:
    """Writes `body`."""

    def __init__(self) -> None:
        module = ir.Module("body")
        function, b = calling.begin(module, "body", calling.BODY)
        self.builder = b
        self.pointers, self.words, chunk = function.args
        plan = self.plan = Plan(b, self.words, CORRELATION)
        self.scratch = self._pointer("scratch")
        self.first, self.count = convolution_chunks.block(b, plan, b.udiv(chunk, plan["splits"]))
        split = b.urem(chunk, plan["splits"])
        slot = convolution_slots.Slot(b, self.scratch, plan)
        self.slot = slot.place
        seen = convolution_chunks.seen(b, plan, self.first, self.count)
        self.source = convolution_chunks.brought(b, plan, self._pointer("source"), ("fill", "about.at", "from"),
                                                 self.first, self.count["n"], seen, self.slot)
        first = b.mul(split, plan["share"])
        with loop(b, first, smaller(b, b.add(first, plan["share"]), plan["jobs"])) as job:
            self._job(job)
        slot.give(b)
        b.ret_void()
        self.text = str(module)

    def _pointer(self, name: str) -> Any:
        b = self.builder
        return b.load(b.gep(self.pointers, [self.plan[name]], source_etype=POINTER), typ=POINTER)

    def _job(self, job: Any) -> None:
        """One panel of channels at all positions of the block."""
        b, plan = self.builder, self.plan
        group, number = b.udiv(job, plan["panels"]), b.urem(job, plan["panels"])
        source = at(b, at(b, self.source, b.mul(group, plan["from.group"])), b.mul(number, plan["from.panel"]))
        panel = self._panel(group, number)
        last = b.icmp_signed("==", number, b.sub(plan["panels"], i64(1)))
        sweep = Callee(b, b.select(last, plan["sweep.last"], plan["sweep"]), SWEEP)
        within = b.mul(number, plan["panel.channels"])
        channel = b.add(b.mul(group, plan["width"]), within)
        channels = smaller(b, plan["panel.channels"], b.sub(plan["width"], within))
        # along a row the last part takes what is left, so that it is never too narrow for a tile
        wide = b.sub(b.add(self.count["w"], b.sub(plan["part.w"], i64(1))), plan["least.part"])
        parts = b.udiv(wide, plan["part.w"])
        parts = b.select(b.icmp_signed("<", wide, plan["part.w"]), i64(1), parts)
        offsets: dict[str, Any] = {}
        counts: dict[str, Any] = {}
        with ExitStack() as nest:
            for axis in "ndh":
                offsets[axis] = nest.enter_context(loop(b, i64(0), self.count[axis], plan[f"part.{axis}"]))
                counts[axis] = smaller(b, plan[f"part.{axis}"], b.sub(self.count[axis], offsets[axis]))
            index = nest.enter_context(loop(b, i64(0), parts))
            offsets["w"] = b.mul(index, plan["part.w"])
            left = b.sub(self.count["w"], offsets["w"])
            counts["w"] = b.select(b.icmp_signed("==", index, b.sub(parts, i64(1))), left, plan["part.w"])
            self._part(source, panel, sweep, offsets, counts, channel, channels)

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
                place = at(b, self.scratch, plan["panels.at"])
                place = at(b, place, b.mul(group, plan["group.bytes"]))
                b.store(at(b, place, b.mul(number, plan["panel.bytes"])), result)
        return b.load(result, typ=POINTER)

    def _part(self, source: Any, panel: Any, sweep: Any, offsets: dict[str, Any], counts: dict[str, Any],
              channel: Any, channels: Any) -> None:
        b, plan = self.builder, self.plan
        flush = plan["flush"]
        buffered = b.icmp_signed("!=", flush, i64(0))
        buffer = at(b, self.slot, plan["buffer.at"])
        target = at(b, self._pointer("target"), b.mul(channel, plan["target.c"]))
        firsts = {}
        for axis in "ndhw":
            source = at(b, source, b.mul(offsets[axis], plan[f"from.{axis}"]))
            firsts[axis] = b.add(self.first[axis], offsets[axis])
            target = at(b, target, b.mul(firsts[axis], plan[f"target.{axis}"]))
        target = b.select(buffered, buffer, target)
        where = [each for axis in "ndhw" for each in (firsts[axis], counts[axis])]
        # the positions between this part's phases' first and the next part's
        spread = [firsts["n"], counts["n"]]
        for axis in "dhw":
            first = b.mul(firsts[axis], plan[f"spread.{axis}"])
            spread += [first, smaller(b, b.mul(counts[axis], plan[f"spread.{axis}"]),
                                      b.sub(plan[f"size.{axis}"], first))]
        ahead = Callee(b, plan["ahead"], FLUSH)
        b.call(ahead, [self.words, self.pointers, buffer, *spread, channel, channels])
        b.call(sweep, [self.words, self.pointers, source, target, panel, *where, channel])
        with b.if_then(buffered):
            b.call(Callee(b, flush, FLUSH), [self.words, self.pointers, buffer, *spread, channel, channels])
