"""What becomes of windows, as code: their maxima and where these lie, their means, or sums of shares.

A chunk is a block of positions of some channels. Vectors lie over channels: the part of the input that the windows
see is copied, channels last, where it does not lie so, and results go to a buffer, whose square blocks are turned,
where they are not to lie so.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import compilation, target
from ..convolution import chunks as convolution_chunks
from ..convolution import scratch_slots
from ..convolution.input_packing import FILL
from ..convolution.plan_fields import Callee, Plan
from ..convolution.transpose import columns
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, block_of, first_lanes, i64, local, loop, smaller
from ..llvm.lowering import intrinsic, number, splat, stored
from .plan import POOLING

MAXIMUM, PLACED, MEAN, SHARE = "maximum", "maximum and place", "mean", "share"
#: vectors of channels that are done together
TOGETHER = 4
#: plan, pointers, the slot, then n, how many, d, how many, h, how many, w, how many, the first channel, how many
FLUSH = ir.FunctionType(ir.VoidType(), [POINTER] * 3 + [I64] * 10)


def lanes_of(dtype: np.dtype) -> int:
    """Elements of a vector."""
    return target.host().vector_bits // 8 // dtype.itemsize


def body(what: str, dtype: np.dtype, direct: bool) -> compilation.Library:
    """The compiled chunk; `direct`: outputs have their channels last."""
    return compilation.load(f"pooling {what} {dtype} {direct}", ("body",), lambda: _Body(what, dtype, direct).text,
                            "few")


def flush(dtype: np.dtype, placed: bool) -> compilation.Library:
    """The compiled `flush`, which turns the buffer's square blocks."""
    return compilation.load(f"pooling flush {dtype} {placed}", ("flush",), lambda: _flush(dtype, placed), "few")


def _moved(b: ir.IRBuilder, base: Any, strides: list[Any], indices: list[Any]) -> Any:
    for stride, index in zip(strides, indices, strict=True):
        base = at(b, base, b.mul(stride, index))
    return base


class _Body:
    """Writes `body`."""

    def __init__(self, what: str, dtype: np.dtype, direct: bool) -> None:
        self.what, self.dtype, self.direct, self.size = what, dtype, direct, dtype.itemsize
        self.lanes = lanes_of(dtype)
        self.whole = ir.IntType(8 * self.size)  # of places
        module = ir.Module("pooling")
        function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        self.builder = b
        self.pointers, words, chunk = function.args
        plan = self.plan = Plan(b, words, POOLING)
        self.read = {f"{name}.{axis}": plan[f"{name}.{axis}"] for name in ("from", "step", "size") for axis in "dhw"}
        self.override = plan["override"]
        self.scratch = self._pointer(plan["scratch"])
        blocks = plan["channels.blocks"]
        channel = b.mul(b.urem(chunk, blocks), plan["channels.block"])
        channels = smaller(b, plan["channels.block"], b.sub(plan["channels"], channel))
        self.first, self.count = convolution_chunks.block(b, plan, b.udiv(chunk, blocks))
        slot = scratch_slots.Slot(b, self.scratch, plan)
        self._source(slot.place, channel, channels)
        self._targets(slot.place, channel)
        self._positions(channels)
        if not direct:
            where = [each for axis in "ndhw" for each in (self.first[axis], self.count[axis])]
            b.call(Callee(b, plan["flush"], FLUSH), [words, self.pointers, slot.place, *where, channel, channels])
        slot.give(b)
        b.ret_void()
        self.text = str(module)

    def _pointer(self, index: Any) -> Any:
        return self.builder.load(self.builder.gep(self.pointers, [index], source_etype=POINTER), typ=POINTER)

    def _source(self, copy: Any, channel: Any, channels: Any) -> None:
        """The part of the input that the block sees: copied where need be. `low` is where it begins."""
        b, plan = self.builder, self.plan
        source = at(b, self._pointer(plan["source"]), b.mul(channel, plan["source.c"]))
        source = at(b, source, b.mul(self.first["n"], plan["source.n"]))
        self.low, sizes = {}, []
        for axis in "dhw":
            first = self.first[axis]
            last = b.sub(b.add(first, self.count[axis]), i64(1))
            self.low[axis] = plan.at(f"lows.{axis}", first)
            sizes += [self.low[axis], b.sub(plan.at(f"ends.{axis}", last), self.low[axis])]
        result = local(b, POINTER)
        with b.if_else(b.icmp_signed("!=", plan["fill"], i64(0))) as (copied, there):
            with copied:
                all_ = b.icmp_signed("==", channels, plan["channels.block"])
                about = b.gep(plan.words, [b.select(all_, plan["about.at"], plan["about.last.at"])],
                              source_etype=I64)
                b.call(Callee(b, plan["fill"], FILL), [copy, source, about, self.count["n"], *sizes])
                b.store(copy, result)
            with there:
                b.store(_moved(b, source, [plan[f"source.{axis}"] for axis in "dhw"],
                               [self.low[axis] for axis in "dhw"]), result)
        self.base = b.load(result, typ=POINTER)

    def _targets(self, slot: Any, channel: Any) -> None:
        """Where the block's first position goes."""
        b, plan = self.builder, self.plan
        names = ["values", "indices"] if self.what == PLACED else ["values"]
        self.targets, self.strides = [], []
        for i, name in enumerate(names):
            if self.direct:
                strides = [plan[f"{name}.{axis}"] for axis in "ndhw"]
                base = at(b, self._pointer(i64(i)), b.mul(channel, plan[f"{name}.c"]))
                base = _moved(b, base, strides, [self.first[axis] for axis in "ndhw"])
            else:
                strides = [plan[f"buffer.{axis}"] for axis in "ndhw"]
                base = at(b, slot, plan["indices.at" if i else "buffer.at"])
            self.targets.append(base)
            self.strides.append(strides)

    def _positions(self, channels: Any) -> None:
        b, plan = self.builder, self.plan
        wide = TOGETHER * self.lanes
        many = b.mul(b.udiv(channels, i64(wide)), i64(wide))
        counts, place = [], self.base
        targets = self.targets
        self.at_window: list[Any] = []
        with ExitStack() as nest:
            for axis in "ndhw":
                index = nest.enter_context(loop(b, i64(0), self.count[axis]))
                targets = [at(b, base, b.mul(index, strides["ndhw".index(axis)]))
                           for base, strides in zip(targets, self.strides, strict=True)]
                if axis == "n":
                    place = at(b, place, b.mul(index, plan["from.n"]))
                    continue
                there = b.add(self.first[axis], index)
                start = plan.at(f"starts.{axis}", there)
                place = at(b, place, b.mul(b.sub(start, self.low[axis]), self.read[f"from.{axis}"]))
                counts.append(plan.at(f"counts.{axis}", there))
                self.at_window.append((there, start))
            with loop(b, i64(0), many, wide) as c:
                self._vectors(place, targets, counts, c, TOGETHER, None)
            with loop(b, many, channels, self.lanes) as c:
                self._vectors(place, targets, counts, c, 1, first_lanes(b, b.sub(channels, c), self.lanes))

    def _vectors(self, place: Any, targets: list[Any], counts: list[Any], channel: Any, vectors: int,
                 mask: Any) -> None:
        """The windows of one position, of some vectors of channels."""
        b, read, lanes, size = self.builder, self.read, self.lanes, self.size
        kind = ir.VectorType(stored(self.dtype), lanes)
        whole = ir.VectorType(self.whole, lanes)
        placed = self.what == PLACED
        begin = -np.inf if self.what in (MAXIMUM, PLACED) else 0.0
        values = [local(b, kind) for _ in range(vectors)]
        places = [local(b, whole) for _ in range(vectors if placed else 0)]
        extents = [read[f"size.{axis}"] for axis in "dhw"]
        starts = [start for _, start in self.at_window]
        for each in values:
            b.store(number(begin, kind), each)
        if placed:
            first = splat(b, self._flat(starts, extents), lanes)
            for each in places:
                b.store(first, each)
        here = at(b, place, b.mul(channel, i64(size)))
        with ExitStack() as nest:
            indices = []
            for axis, count, start in zip("dhw", counts, starts, strict=True):
                index = nest.enter_context(loop(b, i64(0), count))
                steps = b.mul(index, read[f"step.{axis}"])
                here = at(b, here, b.mul(steps, read[f"from.{axis}"]))
                indices.append(b.add(start, steps))
            loaded = [self._load(at(b, here, v * lanes * size), kind, mask) for v in range(vectors)]
            if self.what == SHARE:
                divisor = splat(b, self._divisor(indices), lanes)
                loaded = [b.fdiv(each, divisor) for each in loaded]
            if self.what in (MEAN, SHARE):
                for each, value in zip(values, loaded, strict=True):
                    b.store(b.fadd(b.load(each, typ=kind), value), each)
            else:
                flat = splat(b, self._flat(indices, extents), lanes) if placed else None
                for v, (each, value) in enumerate(zip(values, loaded, strict=True)):
                    best = b.load(each, typ=kind)
                    better = b.or_(b.fcmp_ordered(">", value, best), b.fcmp_unordered("uno", value, value))
                    b.store(b.select(better, value, best), each)
                    if placed:
                        b.store(b.select(better, flat, b.load(places[v], typ=whole)), places[v])
        found = [b.load(each, typ=kind) for each in values]
        if self.what == MEAN:
            divisor = splat(b, self._divisor([there for there, _ in self.at_window]), lanes)
            found = [b.fdiv(each, divisor) for each in found]
        for v, value in enumerate(found):
            self._store(value, at(b, targets[0], b.mul(b.add(channel, i64(v * lanes)), i64(size))), size, mask)
        for v, each in enumerate(places):
            value, itemsize = b.load(each, typ=whole), size
            if self.direct and size < 8:
                value, itemsize = b.sext(value, ir.VectorType(I64, lanes)), 8
            self._store(value, at(b, targets[1], b.mul(b.add(channel, i64(v * lanes)), i64(itemsize))), itemsize, mask)

    def _flat(self, indices: list[Any], extents: list[Any]) -> Any:
        """The flat place of an element in its plane."""
        b = self.builder
        d, h, w = indices
        flat = b.add(b.mul(b.add(b.mul(d, extents[1]), h), extents[2]), w)
        return flat if self.size == 8 else b.trunc(flat, self.whole)

    def _divisor(self, indices: list[Any]) -> Any:
        """What the window of these numbers is divided by."""
        b, plan = self.builder, self.plan
        total = i64(1)
        for axis, index in zip("dhw", indices, strict=True):
            total = b.mul(total, plan.at(f"divisors.{axis}", index))
        chosen = b.select(b.icmp_signed("==", self.override, i64(0)), total, self.override)
        return b.sitofp(chosen, stored(self.dtype))

    def _load(self, place: Any, kind: Any, mask: Any) -> Any:
        b = self.builder
        if mask is None:
            return b.load(place, typ=kind, align=self.size)
        return intrinsic(b, "masked.load", kind, [place, ir.Constant(I32, self.size), mask, number(0, kind)],
                         [kind, POINTER])

    def _store(self, value: Any, place: Any, size: int, mask: Any) -> None:
        b = self.builder
        if mask is None:
            b.store(value, place, align=size)
        else:
            intrinsic(b, "masked.store", ir.VoidType(), [value, place, ir.Constant(I32, size), mask],
                      [value.type, POINTER])


def _flush(dtype: np.dtype, placed: bool) -> str:
    module = ir.Module("flush")
    function, b = kernel_entry.begin(module, "flush", FLUSH)
    words, pointers, slot, n, images, d, depth, h, height, w, width, channel, channels = function.args
    plan = Plan(b, words, POOLING)
    lanes, size = lanes_of(dtype), dtype.itemsize
    flat = b.icmp_signed("!=", plan["flat"], i64(0))
    rows = b.select(flat, i64(1), height)
    run = b.select(flat, b.mul(height, width), width)
    square = block_of(b, dtype, lanes * lanes)
    pitches = [plan[f"buffer.{axis}"] for axis in "ndh"]
    kinds = [("values", dtype, size)]
    if placed:
        kinds.append(("indices", np.dtype(f"i{size}"), 8))
    for i, (name, kind, itemsize) in enumerate(kinds):
        strides = [plan[f"{name}.{axis}"] for axis in "ndhw"]
        base = at(b, b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER),
                  b.mul(channel, plan[f"{name}.c"]))
        base = _moved(b, base, strides, [n, d, h, w])
        buffer = at(b, slot, plan["indices.at" if i else "buffer.at"])
        with ExitStack() as nest:
            indices = [nest.enter_context(loop(b, i64(0), count)) for count in (images, depth, rows)]
            source, to = _moved(b, buffer, pitches, indices), _moved(b, base, strides[:3], indices)
            c = nest.enter_context(loop(b, i64(0), channels, lanes))
            some = smaller(b, b.sub(channels, c), i64(lanes))
            q = nest.enter_context(loop(b, i64(0), run, lanes))
            place = at(b, at(b, source, b.mul(q, plan["buffer.w"])), b.mul(c, i64(size)))
            # behind the last position the buffer goes on for some more
            found = columns(b, kind, [at(b, place, b.mul(plan["buffer.w"], i64(r))) for r in range(lanes)])
            for r, row in enumerate(found):
                b.store(row, at(b, square, r * lanes * size), align=size)
            vector = found[0].type
            dense = b.icmp_signed("==", strides[3], i64(itemsize))
            left = smaller(b, b.sub(run, q), i64(lanes))
            kept = first_lanes(b, left, lanes)
            with loop(b, i64(0), some) as k:
                turned = at(b, square, b.mul(k, i64(lanes * size)))
                goes = at(b, at(b, to, b.mul(b.add(c, k), plan[f"{name}.c"])), b.mul(q, strides[3]))
                with b.if_else(dense) as (together, apart):
                    with together:
                        value = b.load(turned, typ=vector, align=size)
                        if i and size < 8:
                            value = b.sext(value, ir.VectorType(I64, lanes))
                        with b.if_else(b.icmp_signed("==", left, i64(lanes))) as (whole, part):
                            with whole:
                                b.store(value, goes, align=itemsize)
                            with part:
                                intrinsic(b, "masked.store", ir.VoidType(), [
                                    value, goes, ir.Constant(I32, itemsize), kept], [value.type, POINTER])
                    with apart, loop(b, i64(0), left) as r:
                        value = b.load(b.gep(turned, [r], source_etype=stored(kind)), typ=stored(kind), align=size)
                        if i and size < 8:
                            value = b.sext(value, I64)
                        b.store(value, at(b, goes, b.mul(r, strides[3])), align=itemsize)
    b.ret_void()
    return str(module)


__all__ = ["MAXIMUM", "MEAN", "PLACED", "SHARE", "body", "flush", "lanes_of"]
