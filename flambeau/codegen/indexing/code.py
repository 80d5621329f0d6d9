"""Gather and scatter kernels: code generation.

A chunk records its first out-of-range index in scratch memory; `report` combines the chunks' records.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I64,
    POINTER,
    NdIterator,
    Operand,
    as_opaque_pointer,
    at,
    first_lanes,
    i64,
    local,
    loop,
    smaller,
    word,
)
from ..llvm.lowering import constant, lower, memory_type, value_type
from ..scalar.scalar_ir import Node, cast, maximum, minimum, to_opmath, variable

#: unrolling of the elementwise gather
UNROLL = 4
#: how a scattered element is combined with what is there, of two nodes of scalar IR
COMBINED: dict[str, Callable[[Node, Node], Node]] = {
    "add": operator.add, "mul": operator.mul, "maximum": maximum, "minimum": minimum}


def _identity(op: str, dtype: np.dtype) -> int | float:
    """What an operation leaves other elements as they are with; 0 for "set"."""
    if op in ("maximum", "minimum"):
        sign = -1 if op == "maximum" else 1
        if dtype.kind == "f":
            return sign * math.inf
        limits = np.iinfo(dtype)
        return int(limits.min if sign < 0 else limits.max)
    return 1 if op == "mul" else 0


class _Emitter:
    """Emits one module.

    Args:
        dtype: the elements' dtype.
        index: the index's dtype.
        steps: the operands' step kinds along a run: output, input; then the index (gather), or the output along the
            indexed dimension (scatter).
        lanes: elements of a vector.
        wrap: whether negative indices count from the end.
    """

    def __init__(self, dtype: np.dtype, index: np.dtype, steps: str, lanes: int, wrap: bool) -> None:
        self.dtype, self.index, self.lanes, self.wrap = dtype, index, lanes, wrap
        self.operands = [Operand(dtype, step) for step in steps]

    def _begin(self, module: ir.Module, words: int) -> list[Any]:
        """Begin the body; the plan's fields after the number of chunks, the size and the stride."""
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, self.plan, self.chunk = body.args
        self.out, _, self.plain, self.indices, self.records = (
            b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(5))
        self.invalid, self.invalid_index = local(b, I64), local(b, I64)
        b.store(i64(0), self.invalid)
        b.store(i64(0), self.invalid_index)
        fields = [word(b, self.plan, 1 + i) for i in range(words)]
        self.size, self.stride = fields[:2]
        return fields[2:]

    def _end(self, module: ir.Module) -> str:
        """End the body by storing its record, and generate `report`."""
        b = self.b
        record = b.gep(self.records, [b.shl(self.chunk, i64(1))], source_etype=I64)
        b.store(b.load(self.invalid, typ=I64), record)
        b.store(b.load(self.invalid_index, typ=I64), at(b, record, 8))
        b.ret_void()
        report, b = kernel_entry.begin(module, "report", kernel_entry.BODY)
        pointers, plan, _ = report.args
        flag, records = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in (1, 4))
        b.store(i64(0), flag)
        b.store(i64(0), at(b, flag, 8))
        with loop(b, i64(0), word(b, plan, 0)) as chunk:
            invalid = word(b, records, b.shl(chunk, i64(1)))
            with b.if_then(b.and_(b.icmp_signed("!=", invalid, i64(0)),
                                  b.icmp_signed("==", b.load(flag, typ=I64), i64(0)))):
                b.store(invalid, flag)
                b.store(word(b, records, b.add(b.shl(chunk, i64(1)), i64(1))), at(b, flag, 8))
        b.ret_void()
        return str(module)

    def _record(self, index_value: Any) -> None:
        """Record an out-of-range index, if it is the first."""
        b = self.b
        first = b.icmp_signed("==", b.load(self.invalid, typ=I64), i64(0))
        b.store(b.select(first, index_value, b.load(self.invalid_index, typ=I64)), self.invalid_index)
        b.store(i64(1), self.invalid)

    def _resolved(self, index_value: Any) -> tuple[Any, Any]:
        """The position of an index, and whether it is in range."""
        b, place = self.b, index_value
        if self.wrap:
            place = b.select(b.icmp_signed("<", index_value, i64(0)), b.add(index_value, self.size), index_value)
        return place, b.icmp_unsigned("<", place, self.size)

    def _scalar_index(self, pointer: Any) -> Any:
        """An index as 64 bits."""
        value = self.b.load(pointer, typ=memory_type(self.index), align=1)
        if value.type == I64:
            return value
        return self.b.sext(value, I64) if self.index.kind == "i" else self.b.zext(value, I64)


class Take(_Emitter):
    """Emits gathers."""

    def module(self, rows: bool) -> str:
        """The module's text; with `rows` all elements of a run have the same index."""
        module = ir.Module("take")
        n, block, across, lines, chunk_lines, rank, *strides = self._begin(module, 11)
        b = self.b
        start = b.mul(b.srem(self.chunk, across), block)
        first = b.mul(b.sdiv(self.chunk, across), chunk_lines)
        last = smaller(b, b.add(first, chunk_lines), lines)
        count = smaller(b, block, b.sub(n, start))
        extents = at(b, self.plan, 8 * 12)
        walk = NdIterator(b, [at(b, base, b.mul(start, stride)) for base, stride in
                        zip((self.out, self.plain, self.indices), strides, strict=True)],
                    rank, extents, b.gep(extents, [rank], source_etype=I64), first)
        with loop(b, first, last):
            out, x, index = walk.pointers(b)
            if rows:
                self._row(out, x, index, count, strides)
            else:
                self._elements((out, x, index), strides, count)
            walk.advance(b)
        return self._end(module)

    def _row(self, out: Any, x: Any, index: Any, count: Any, strides: Sequence[Any]) -> None:
        b, lanes = self.b, self.lanes
        index_value = self._scalar_index(index)
        place, in_range = self._resolved(index_value)
        target, source, _ = self.operands
        with b.if_else(in_range) as (valid, invalid):
            with valid:
                base = at(b, x, b.mul(place, self.stride))
                unrolled_end = b.sub(count, b.srem(count, i64(4 * lanes)))
                for begin, end, unroll in ((i64(0), unrolled_end, 4), (unrolled_end, count, 1)):
                    with loop(b, begin, end, unroll * lanes) as j:
                        places = [b.add(j, i64(u * lanes)) for u in range(unroll)]
                        mask = None if unroll > 1 else first_lanes(b, b.sub(count, j), lanes)
                        values = [source.load(b, base, strides[1], each, lanes, mask) for each in places]
                        for each, value in zip(places, values, strict=True):
                            target.store(b, value, out, strides[0], each, lanes, mask)
            with invalid:
                with loop(b, i64(0), count, lanes) as j:
                    zero = constant(0, value_type(self.dtype, lanes))
                    target.store(b, zero, out, strides[0], j, lanes, first_lanes(b, b.sub(count, j), lanes))
                self._record(index_value)

    def _elements(self, bases: Sequence[Any], strides: Sequence[Any], count: Any) -> None:
        """Gather element by element, unrolled: measured no slower than gather instructions."""
        b = self.b
        zero = local(b, memory_type(self.dtype))
        b.store(constant(0, zero.type.pointee), zero)
        zero_address = b.ptrtoint(as_opaque_pointer(b, zero), I64)
        unrolled_end = b.sub(count, b.srem(count, i64(UNROLL)))
        for begin, end, unroll in ((i64(0), unrolled_end, UNROLL), (unrolled_end, count, 1)):
            with loop(b, begin, end, unroll) as j:
                positions = [b.add(j, i64(u)) for u in range(unroll)]
                if unroll == 1:
                    self._element(bases, strides, j, zero_address)
                    continue
                reads = [self._read(bases, strides, each) for each in positions]
                with b.if_else(functools.reduce(b.and_, [in_range for *_, in_range in reads]), likely=True) as (
                        valid, invalid):
                    with valid:
                        values = [b.load(at(b, x, b.mul(place, self.stride)), typ=memory_type(self.dtype), align=1)
                                  for _, x, _, place, _ in reads]
                        for (out, *_), value in zip(reads, values, strict=True):
                            b.store(value, out, align=1)
                    with invalid:
                        for each in positions:
                            self._element(bases, strides, each, zero_address)

    def _read(self, bases: Sequence[Any], strides: Sequence[Any], j: Any) -> tuple[Any, ...]:
        """Of element j of a run: where it is written, the base it is read from, its index, its place, whether there is
        one.
        """
        b = self.b
        out, x, index = (at(b, base, b.mul(j, self._stride(i, strides[i]))) for i, base in enumerate(bases))
        index_value = self._scalar_index(index)
        return out, x, index_value, *self._resolved(index_value)

    def _element(self, bases: Sequence[Any], strides: Sequence[Any], j: Any, zero_address: Any) -> None:
        """Gather element j of a run; an out-of-range index reads the zero at `zero_address`."""
        b, kind = self.b, memory_type(self.dtype)
        out, x, index_value, place, in_range = self._read(bases, strides, j)
        address = b.add(b.ptrtoint(x, I64), b.mul(place, self.stride))
        value = b.load(b.inttoptr(b.select(in_range, address, zero_address), POINTER), typ=kind, align=1)
        b.store(value, out, align=1)
        with b.if_then(b.not_(in_range), likely=False):
            self._record(index_value)

    def _stride(self, i: int, index_value: Any) -> Any:
        """The stride of operand i along a run, a constant where known at compile time."""
        step = self.operands[i].step
        itemsize = (self.index if i == 2 else self.dtype).itemsize
        return i64(itemsize) if step == "c" else i64(0) if step == "b" else index_value


class Put(_Emitter):
    """Emits scatters and scatter-adds."""

    def module(self, kind: str, op: str, fill: bool) -> str:
        """The module's text.

        Args:
            kind: "run" where all elements of a run have the same index, "each" where each has its own, "single" for
                runs of one element.
            op: "set", or one of `COMBINED`.
            fill: whether to fill the output with the operation's identity first (zeros of "set").
        """
        module = ir.Module("put")
        (n, block, across, lines, chunk_lines, ranges, reach, count, inner_count, source_step, index_step, rank, depth,
         *strides) = self._begin(module, 18)
        b = self.b
        part, rest = b.srem(self.chunk, ranges), b.sdiv(self.chunk, ranges)
        low = b.mul(part, reach)
        high = smaller(b, b.add(low, reach), self.size)
        start = b.mul(b.srem(rest, across), block)
        first = b.mul(b.sdiv(rest, across), chunk_lines)
        last = smaller(b, b.add(first, chunk_lines), lines)
        length = smaller(b, block, b.sub(n, start))
        extents = at(b, self.plan, 8 * 19)
        outer = b.gep(extents, [rank], source_etype=I64)
        inside = b.gep(outer, [b.mul(rank, i64(3))], source_etype=I64)
        walk = NdIterator(b, [at(b, base, b.mul(start, stride)) for base, stride in
                        zip((self.out, self.plain, self.indices), strides, strict=True)], rank, extents, outer, first)
        with loop(b, first, last):
            bases = walk.pointers(b)
            if fill:
                self._fill(op, bases[0], low, high, length, None if kind == "single" else strides[0])
            through = NdIterator(b, bases, depth, inside, b.gep(inside, [depth], source_etype=I64), i64(0))
            with loop(b, i64(0), count):
                out, *others = through.pointers(b)
                with loop(b, i64(0), inner_count) as i:
                    source, index = (at(b, base, b.mul(i, step)) for base, step in
                                     zip(others, (source_step, index_step), strict=True))
                    if kind == "run":
                        self._add_run(op, (out, source, index), strides, length, low, high)
                    elif kind == "single":
                        self._add_element(op, (out, source, index), low, high)
                    else:
                        with loop(b, i64(0), length) as j:
                            self._add_element(op, [at(b, base, b.mul(j, stride)) for base, stride in
                                           zip((out, source, index), strides, strict=True)], low, high)
                through.advance(b)
            walk.advance(b)
        return self._end(module)

    def _fill(self, op: str, out: Any, low: Any, high: Any, length: Any, stride: Any | None) -> None:
        """Fill the runs (of elements at `stride`) or single elements at positions `low` to `high`."""
        b, lanes = self.b, self.lanes
        zero = constant(_identity(op, self.dtype), value_type(self.dtype, lanes))
        if stride is None:
            with loop(b, low, high, lanes) as place:
                self.operands[2].store(b, zero, out, self.stride, place, lanes,
                                       first_lanes(b, b.sub(high, place), lanes))
            return
        if self.operands[0].step != "c" and self.operands[2].step == "c":  # along memory, not across it
            with loop(b, i64(0), length) as j:
                line = at(b, out, b.mul(j, stride))
                with loop(b, low, high, lanes) as place:
                    self.operands[2].store(b, zero, line, self.stride, place, lanes,
                                           first_lanes(b, b.sub(high, place), lanes))
            return
        with loop(b, low, high) as place, loop(b, i64(0), length, lanes) as j:
            self.operands[0].store(b, zero, at(b, out, b.mul(place, self.stride)), stride, j, lanes,
                                   first_lanes(b, b.sub(length, j), lanes))

    def _place(self, index: Any, low: Any, high: Any) -> tuple[Any, Any]:
        """The position of an index, and whether it belongs to this chunk."""
        b = self.b
        index_value = self._scalar_index(index)
        place, in_range = self._resolved(index_value)
        with b.if_then(b.not_(in_range), likely=False):
            self._record(index_value)
        owned = b.and_(b.icmp_signed(">=", place, low), b.icmp_signed("<", place, high))
        return place, b.and_(in_range, owned)

    def _combined(self, op: str, old: Any, new: Any, lanes: int) -> Any:
        if op == "set":
            return new
        x, y = variable(0, self.dtype), variable(1, self.dtype)
        combined = COMBINED[op](to_opmath(x), to_opmath(y))
        [value] = lower(self.b, [cast(combined, self.dtype)], {x: old, y: new}, lanes)
        return value

    def _add_run(self, op: str, bases: Sequence[Any], strides: Sequence[Any], length: Any, low: Any, high: Any) -> None:
        b, lanes = self.b, self.lanes
        place, owned = self._place(bases[2], low, high)
        target, source = self.operands[:2]
        with b.if_then(owned):
            out = at(b, bases[0], b.mul(place, self.stride))
            with loop(b, i64(0), length, lanes) as j:
                mask = first_lanes(b, b.sub(length, j), lanes)
                new = source.load(b, bases[1], strides[1], j, lanes, mask)
                old = target.load(b, out, strides[0], j, lanes, mask) if op != "set" else None
                target.store(b, self._combined(op, old, new, lanes), out, strides[0], j, lanes, mask)

    def _add_element(self, op: str, bases: Sequence[Any], low: Any, high: Any) -> None:
        b, kind = self.b, memory_type(self.dtype)
        place, owned = self._place(bases[2], low, high)
        with b.if_then(owned):
            out = at(b, bases[0], b.mul(place, self.stride))
            new = b.load(bases[1], typ=kind, align=1)
            old = b.load(out, typ=kind, align=1) if op != "set" else None
            b.store(self._combined(op, old, new, 0), out, align=1)
