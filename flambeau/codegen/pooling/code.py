"""Pooling kernels: maxima of windows (and their indices), means, and the mean's gradient.

A chunk is a block of positions of some channels. Vectors are over channels. An input that is not channels last is
copied to that layout first; outputs that are not go to a buffer, which `flush` transposes in square blocks.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import compilation, target
from ..convolution import chunks, scratch_slots
from ..convolution.input_packing import FILL
from ..convolution.plan_fields import Callee, Plan
from ..convolution.transpose import columns
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, first_lanes, i64, local, loop, smaller, stack_block
from ..llvm.lowering import constant, intrinsic, memory_type, splat
from .plan import POOLING

MAX, ARGMAX, MEAN, MEAN_GRADIENT = "max", "argmax", "mean", "mean gradient"
#: vectors of channels computed together
UNROLL = 4
#: plan, pointers, slot; first index and count along n, d, h, w and channels
FLUSH = ir.FunctionType(ir.VoidType(), [POINTER] * 3 + [I64] * 10)


def lanes_of(dtype: np.dtype) -> int:
    """Elements of a vector."""
    return target.host().vector_bits // 8 // dtype.itemsize


def body(what: str, dtype: np.dtype, direct: bool) -> compilation.Library:
    """The compiled `body`; `direct`: outputs are channels last."""
    return compilation.load(f"pooling {what} {dtype} {direct}", ("body",), lambda: _Body(what, dtype, direct).text,
                            "few")


def flush(dtype: np.dtype, argmax: bool) -> compilation.Library:
    """The compiled `flush`, which transposes and stores the buffer."""
    return compilation.load(f"pooling flush {dtype} {argmax}", ("flush",), lambda: _flush(dtype, argmax), "few")


def _moved(b: ir.IRBuilder, base: Any, strides: list[Any], indices: list[Any]) -> Any:
    for stride, index in zip(strides, indices, strict=True):
        base = at(b, base, b.mul(stride, index))
    return base


class _Body:
    """Generates `body`."""

    def __init__(self, what: str, dtype: np.dtype, direct: bool) -> None:
        self.what, self.dtype, self.direct, self.size = what, dtype, direct, dtype.itemsize
        self.lanes = lanes_of(dtype)
        self.index_type = ir.IntType(8 * self.size)  # of window indices, as wide as elements
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
        self.first, self.count = chunks.block(b, plan, b.udiv(chunk, blocks))
        slot = scratch_slots.Slot(b, self.scratch, plan)
        self._source(slot.place, channel, channels)
        self._targets(slot.place, channel)
        self._positions(channels)
        if not direct:
            where = [each for axis in "ndhw" for each in (self.first[axis], self.count[axis])]
            b.call(Callee(b, plan["flush"], FLUSH), [words, self.pointers, slot.place, *where, channel, channels])
        slot.release(b)
        b.ret_void()
        self.text = str(module)

    def _pointer(self, index: Any) -> Any:
        return self.builder.load(self.builder.gep(self.pointers, [index], source_etype=POINTER), typ=POINTER)

    def _source(self, copy: Any, channel: Any, channels: Any) -> None:
        """Set the address of the block's input region, copied where necessary; `low` is its first index."""
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
        with b.if_else(b.icmp_signed("!=", plan["fill"], i64(0))) as (copied, in_place):
            with copied:
                full = b.icmp_signed("==", channels, plan["channels.block"])
                fill_fields = b.gep(plan.words, [b.select(full, plan["fill_fields.at"], plan["fill_fields.last.at"])],
                              source_etype=I64)
                b.call(Callee(b, plan["fill"], FILL), [copy, source, fill_fields, self.count["n"], *sizes])
                b.store(copy, result)
            with in_place:
                b.store(_moved(b, source, [plan[f"source.{axis}"] for axis in "dhw"],
                               [self.low[axis] for axis in "dhw"]), result)
        self.base = b.load(result, typ=POINTER)

    def _targets(self, slot: Any, channel: Any) -> None:
        """Set the addresses of the block's first position in the outputs or the buffer."""
        b, plan = self.builder, self.plan
        names = ["values", "indices"] if self.what == ARGMAX else ["values"]
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
        wide = UNROLL * self.lanes
        unrolled_end = b.mul(b.udiv(channels, i64(wide)), i64(wide))
        counts, place = [], self.base
        targets = self.targets
        self.windows: list[Any] = []
        with ExitStack() as nest:
            for axis in "ndhw":
                index = nest.enter_context(loop(b, i64(0), self.count[axis]))
                targets = [at(b, base, b.mul(index, strides["ndhw".index(axis)]))
                           for base, strides in zip(targets, self.strides, strict=True)]
                if axis == "n":
                    place = at(b, place, b.mul(index, plan["from.n"]))
                    continue
                window = b.add(self.first[axis], index)
                start = plan.at(f"starts.{axis}", window)
                place = at(b, place, b.mul(b.sub(start, self.low[axis]), self.read[f"from.{axis}"]))
                counts.append(plan.at(f"counts.{axis}", window))
                self.windows.append((window, start))
            with loop(b, i64(0), unrolled_end, wide) as c:
                self._vectors(place, targets, counts, c, UNROLL, None)
            with loop(b, unrolled_end, channels, self.lanes) as c:
                self._vectors(place, targets, counts, c, 1, first_lanes(b, b.sub(channels, c), self.lanes))

    def _vectors(self, place: Any, targets: list[Any], counts: list[Any], channel: Any, vectors: int,
                 mask: Any) -> None:
        """Reduce the windows of one position, for `vectors` vectors of channels."""
        b, read, lanes, size = self.builder, self.read, self.lanes, self.size
        kind = ir.VectorType(memory_type(self.dtype), lanes)
        index_vector = ir.VectorType(self.index_type, lanes)
        argmax = self.what == ARGMAX
        initial = -np.inf if self.what in (MAX, ARGMAX) else 0.0
        values = [local(b, kind) for _ in range(vectors)]
        places = [local(b, index_vector) for _ in range(vectors if argmax else 0)]
        extents = [read[f"size.{axis}"] for axis in "dhw"]
        starts = [start for _, start in self.windows]
        for each in values:
            b.store(constant(initial, kind), each)
        if argmax:
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
            if self.what == MEAN_GRADIENT:
                divisor = splat(b, self._divisor(indices), lanes)
                loaded = [b.fdiv(each, divisor) for each in loaded]
            if self.what in (MEAN, MEAN_GRADIENT):
                for each, value in zip(values, loaded, strict=True):
                    b.store(b.fadd(b.load(each, typ=kind), value), each)
            else:
                flat = splat(b, self._flat(indices, extents), lanes) if argmax else None
                for v, (each, value) in enumerate(zip(values, loaded, strict=True)):
                    best = b.load(each, typ=kind)
                    better = b.or_(b.fcmp_ordered(">", value, best), b.fcmp_unordered("uno", value, value))
                    b.store(b.select(better, value, best), each)
                    if argmax:
                        b.store(b.select(better, flat, b.load(places[v], typ=index_vector)), places[v])
        results = [b.load(each, typ=kind) for each in values]
        if self.what == MEAN:
            divisor = splat(b, self._divisor([window for window, _ in self.windows]), lanes)
            results = [b.fdiv(each, divisor) for each in results]
        for v, value in enumerate(results):
            self._store(value, at(b, targets[0], b.mul(b.add(channel, i64(v * lanes)), i64(size))), size, mask)
        for v, each in enumerate(places):
            value, itemsize = b.load(each, typ=index_vector), size
            if self.direct and size < 8:
                value, itemsize = b.sext(value, ir.VectorType(I64, lanes)), 8
            self._store(value, at(b, targets[1], b.mul(b.add(channel, i64(v * lanes)), i64(itemsize))), itemsize, mask)

    def _flat(self, indices: list[Any], extents: list[Any]) -> Any:
        """The flat index of an element in its plane."""
        b = self.builder
        d, h, w = indices
        flat = b.add(b.mul(b.add(b.mul(d, extents[1]), h), extents[2]), w)
        return flat if self.size == 8 else b.trunc(flat, self.index_type)

    def _divisor(self, indices: list[Any]) -> Any:
        """The divisor of the window with these indices."""
        b, plan = self.builder, self.plan
        total = i64(1)
        for axis, index in zip("dhw", indices, strict=True):
            total = b.mul(total, plan.at(f"divisors.{axis}", index))
        chosen = b.select(b.icmp_signed("==", self.override, i64(0)), total, self.override)
        return b.sitofp(chosen, memory_type(self.dtype))

    def _load(self, place: Any, kind: Any, mask: Any) -> Any:
        b = self.builder
        if mask is None:
            return b.load(place, typ=kind, align=self.size)
        return intrinsic(b, "masked.load", kind, [place, ir.Constant(I32, self.size), mask, constant(0, kind)],
                         [kind, POINTER])

    def _store(self, value: Any, place: Any, size: int, mask: Any) -> None:
        b = self.builder
        if mask is None:
            b.store(value, place, align=size)
        else:
            intrinsic(b, "masked.store", ir.VoidType(), [value, place, ir.Constant(I32, size), mask],
                      [value.type, POINTER])


def _flush(dtype: np.dtype, argmax: bool) -> str:
    module = ir.Module("flush")
    function, b = kernel_entry.begin(module, "flush", FLUSH)
    words, pointers, slot, n, images, d, depth, h, height, w, width, channel, channels = function.args
    plan = Plan(b, words, POOLING)
    lanes, size = lanes_of(dtype), dtype.itemsize
    flat = b.icmp_signed("!=", plan["flat"], i64(0))
    rows = b.select(flat, i64(1), height)
    run = b.select(flat, b.mul(height, width), width)
    square = stack_block(b, dtype, lanes * lanes)
    pitches = [plan[f"buffer.{axis}"] for axis in "ndh"]
    kinds = [("values", dtype, size)]
    if argmax:
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
            channel_count = smaller(b, b.sub(channels, c), i64(lanes))
            q = nest.enter_context(loop(b, i64(0), run, lanes))
            place = at(b, at(b, source, b.mul(q, plan["buffer.w"])), b.mul(c, i64(size)))
            # the buffer is padded by a block behind the last position
            block = columns(b, kind, [at(b, place, b.mul(plan["buffer.w"], i64(r))) for r in range(lanes)])
            for r, row in enumerate(block):
                b.store(row, at(b, square, r * lanes * size), align=size)
            vector = block[0].type
            dense = b.icmp_signed("==", strides[3], i64(itemsize))
            left = smaller(b, b.sub(run, q), i64(lanes))
            mask = first_lanes(b, left, lanes)
            with loop(b, i64(0), channel_count) as k:
                transposed = at(b, square, b.mul(k, i64(lanes * size)))
                target = at(b, at(b, to, b.mul(b.add(c, k), plan[f"{name}.c"])), b.mul(q, strides[3]))
                with b.if_else(dense) as (contiguous, strided):
                    with contiguous:
                        value = b.load(transposed, typ=vector, align=size)
                        if i and size < 8:
                            value = b.sext(value, ir.VectorType(I64, lanes))
                        with b.if_else(b.icmp_signed("==", left, i64(lanes))) as (full, partial):
                            with full:
                                b.store(value, target, align=itemsize)
                            with partial:
                                intrinsic(b, "masked.store", ir.VoidType(), [
                                    value, target, ir.Constant(I32, itemsize), mask], [value.type, POINTER])
                    with strided, loop(b, i64(0), left) as r:
                        element = memory_type(kind)
                        value = b.load(b.gep(transposed, [r], source_etype=element), typ=element, align=size)
                        if i and size < 8:
                            value = b.sext(value, I64)
                        b.store(value, at(b, target, b.mul(r, strides[3])), align=itemsize)
    b.ret_void()
    return str(module)


__all__ = ["ARGMAX", "MAX", "MEAN", "MEAN_GRADIENT", "body", "flush", "lanes_of"]
