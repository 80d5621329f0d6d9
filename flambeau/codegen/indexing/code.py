"""The code of kernels that go by an index.

A chunk notes the first index that is out of range in the scratch memory; `report` looks through all notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I64, POINTER, Operand, Walk, at, first_lanes, i64, local, loop, smaller, untyped, word
from ..llvm.lowering import computed, lower, number, stored
from ..scalar.scalar_ir import cast, variable, wide

#: elements that are taken in a turn of a loop
TURN = 4


class _Writer:
    """Writes one module.

    Args:
        dtype: the elements'.
        index: the index's dtype.
        steps: how the operands step along a run: what is written, what is read, and the third, which is the index
            where elements are taken, and what is written, from place to place, where they are put.
        lanes: elements of a vector.
        wrap: whether negative indices count from the end.
    """

    def __init__(self, dtype: np.dtype, index: np.dtype, steps: str, lanes: int, wrap: bool) -> None:
        self.dtype, self.index, self.lanes, self.wrap = dtype, index, lanes, wrap
        self.operands = [Operand(dtype, step) for step in steps]

    def _begin(self, module: ir.Module, words: int) -> list[Any]:
        """Begin the body; the plan's first integers, behind the number of chunks."""
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, self.plan, self.chunk = body.args
        self.out, _, self.plain, self.indices, self.notes = (
            b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(5))
        self.bad, self.which = local(b, I64), local(b, I64)
        b.store(i64(0), self.bad)
        b.store(i64(0), self.which)
        found = [word(b, self.plan, 1 + i) for i in range(words)]
        self.size, self.stride = found[:2]
        return found[2:]

    def _end(self, module: ir.Module) -> str:
        """End the body with its note, and write `report`."""
        b = self.b
        note = b.gep(self.notes, [b.shl(self.chunk, i64(1))], source_etype=I64)
        b.store(b.load(self.bad, typ=I64), note)
        b.store(b.load(self.which, typ=I64), at(b, note, 8))
        b.ret_void()
        report, b = kernel_entry.begin(module, "report", kernel_entry.BODY)
        pointers, plan, _ = report.args
        flag, notes = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in (1, 4))
        b.store(i64(0), flag)
        b.store(i64(0), at(b, flag, 8))
        with loop(b, i64(0), word(b, plan, 0)) as chunk:
            bad = word(b, notes, b.shl(chunk, i64(1)))
            with b.if_then(b.and_(b.icmp_signed("!=", bad, i64(0)),
                                  b.icmp_signed("==", b.load(flag, typ=I64), i64(0)))):
                b.store(bad, flag)
                b.store(word(b, notes, b.add(b.shl(chunk, i64(1)), i64(1))), at(b, flag, 8))
        b.ret_void()
        return str(module)

    def _note(self, given: Any) -> None:
        """Note an index that is out of range, if it is the first."""
        b = self.b
        first = b.icmp_signed("==", b.load(self.bad, typ=I64), i64(0))
        b.store(b.select(first, given, b.load(self.which, typ=I64)), self.which)
        b.store(i64(1), self.bad)

    def _resolved(self, given: Any) -> tuple[Any, Any]:
        """The place that an index stands for, and whether there is one."""
        b, place = self.b, given
        if self.wrap:
            place = b.select(b.icmp_signed("<", given, i64(0)), b.add(given, self.size), given)
        return place, b.icmp_unsigned("<", place, self.size)

    def _scalar_index(self, pointer: Any) -> Any:
        """An index as 64 bits."""
        value = self.b.load(pointer, typ=stored(self.index), align=1)
        if value.type == I64:
            return value
        return self.b.sext(value, I64) if self.index.kind == "i" else self.b.zext(value, I64)


class Take(_Writer):
    """Elements taken from where an index says."""

    def module(self, rows: bool) -> str:
        """The module's text: runs whose elements all have one index (`rows`), or each its own."""
        module = ir.Module("take")
        n, block, across, lines, tall, rank, *strides = self._begin(module, 11)
        b = self.b
        start = b.mul(b.srem(self.chunk, across), block)
        first = b.mul(b.sdiv(self.chunk, across), tall)
        last = smaller(b, b.add(first, tall), lines)
        count = smaller(b, block, b.sub(n, start))
        extents = at(b, self.plan, 8 * 12)
        walk = Walk(b, [at(b, base, b.mul(start, stride)) for base, stride in
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
        given = self._scalar_index(index)
        place, there = self._resolved(given)
        target, source, _ = self.operands
        with b.if_else(there) as (found, missing):
            with found:
                base = at(b, x, b.mul(place, self.stride))
                whole = b.sub(count, b.srem(count, i64(4 * lanes)))
                for begin, end, taken in ((i64(0), whole, 4), (whole, count, 1)):
                    with loop(b, begin, end, taken * lanes) as j:
                        places = [b.add(j, i64(u * lanes)) for u in range(taken)]
                        mask = None if taken > 1 else first_lanes(b, b.sub(count, j), lanes)
                        values = [source.load(b, base, strides[1], each, lanes, mask) for each in places]
                        for each, value in zip(places, values, strict=True):
                            target.store(b, value, out, strides[0], each, lanes, mask)
            with missing:
                with loop(b, i64(0), count, lanes) as j:
                    none = number(0, computed(self.dtype, lanes))
                    target.store(b, none, out, strides[0], j, lanes, first_lanes(b, b.sub(count, j), lanes))
                self._note(given)

    def _elements(self, bases: Sequence[Any], strides: Sequence[Any], count: Any) -> None:
        """Elements one by one, some in a turn: processors that have an instruction for several are no quicker by it."""
        b = self.b
        none = local(b, stored(self.dtype))
        b.store(number(0, none.type.pointee), none)
        nothing = b.ptrtoint(untyped(b, none), I64)
        whole = b.sub(count, b.srem(count, i64(TURN)))
        for begin, end, turn in ((i64(0), whole, TURN), (whole, count, 1)):
            with loop(b, begin, end, turn) as j:
                for u in range(turn):
                    self._element(bases, strides, b.add(j, i64(u)), nothing)

    def _element(self, bases: Sequence[Any], strides: Sequence[Any], j: Any, nothing: Any) -> None:
        """Element j of a run: what lies at the address `nothing` where its index is out of range."""
        b, kind = self.b, stored(self.dtype)
        out, x, index = (at(b, base, b.mul(j, self._stride(i, strides[i]))) for i, base in enumerate(bases))
        given = self._scalar_index(index)
        place, there = self._resolved(given)
        address = b.add(b.ptrtoint(x, I64), b.mul(place, self.stride))
        value = b.load(b.inttoptr(b.select(there, address, nothing), POINTER), typ=kind, align=1)
        b.store(value, out, align=1)
        with b.if_then(b.not_(there), likely=False):
            self._note(given)

    def _stride(self, i: int, given: Any) -> Any:
        """The stride of operand i along a run, as a constant where it is known."""
        step = self.operands[i].step
        itemsize = (self.index if i == 2 else self.dtype).itemsize
        return i64(itemsize) if step == "c" else i64(0) if step == "b" else given


class Put(_Writer):
    """Elements put, or added, to where an index says."""

    def module(self, kind: str, op: str, fill: bool) -> str:
        """The module's text: runs whose elements all have one index ("run"), or each its own, or runs of one element.

        Args:
            kind: "run", "each" or "single".
            op: "add" or "set".
            fill: whether there are zeros first.
        """
        module = ir.Module("put")
        (n, block, across, lines, tall, ranges, reach, count, near, source_step, index_step, rank, depth,
         *strides) = self._begin(module, 18)
        b = self.b
        part, rest = b.srem(self.chunk, ranges), b.sdiv(self.chunk, ranges)
        low = b.mul(part, reach)
        high = smaller(b, b.add(low, reach), self.size)
        start = b.mul(b.srem(rest, across), block)
        first = b.mul(b.sdiv(rest, across), tall)
        last = smaller(b, b.add(first, tall), lines)
        length = smaller(b, block, b.sub(n, start))
        extents = at(b, self.plan, 8 * 19)
        outer = b.gep(extents, [rank], source_etype=I64)
        inside = b.gep(outer, [b.mul(rank, i64(3))], source_etype=I64)
        walk = Walk(b, [at(b, base, b.mul(start, stride)) for base, stride in
                        zip((self.out, self.plain, self.indices), strides, strict=True)], rank, extents, outer, first)
        with loop(b, first, last):
            bases = walk.pointers(b)
            if fill:
                self._fill(bases[0], low, high, length, None if kind == "single" else strides[0])
            through = Walk(b, bases, depth, inside, b.gep(inside, [depth], source_etype=I64), i64(0))
            with loop(b, i64(0), count):
                out, *others = through.pointers(b)
                with loop(b, i64(0), near) as i:
                    source, index = (at(b, base, b.mul(i, step)) for base, step in
                                     zip(others, (source_step, index_step), strict=True))
                    if kind == "run":
                        self._line(op, (out, source, index), strides, length, low, high)
                    elif kind == "single":
                        self._one(op, (out, source, index), low, high)
                    else:
                        with loop(b, i64(0), length) as j:
                            self._one(op, [at(b, base, b.mul(j, stride)) for base, stride in
                                           zip((out, source, index), strides, strict=True)], low, high)
                through.advance(b)
            walk.advance(b)
        return self._end(module)

    def _fill(self, out: Any, low: Any, high: Any, length: Any, stride: Any | None) -> None:
        """Zeros in the runs at these places, whose elements are `stride` apart, or in single elements there."""
        b, lanes = self.b, self.lanes
        none = number(0, computed(self.dtype, lanes))
        if stride is None:
            with loop(b, low, high, lanes) as place:
                self.operands[2].store(b, none, out, self.stride, place, lanes,
                                       first_lanes(b, b.sub(high, place), lanes))
            return
        with loop(b, low, high) as place, loop(b, i64(0), length, lanes) as j:
            self.operands[0].store(b, none, at(b, out, b.mul(place, self.stride)), stride, j, lanes,
                                   first_lanes(b, b.sub(length, j), lanes))

    def _place(self, index: Any, low: Any, high: Any) -> tuple[Any, Any]:
        """The place that an index stands for, and whether it is this chunk's."""
        b = self.b
        given = self._scalar_index(index)
        place, there = self._resolved(given)
        with b.if_then(b.not_(there), likely=False):
            self._note(given)
        mine = b.and_(b.icmp_signed(">=", place, low), b.icmp_signed("<", place, high))
        return place, b.and_(there, mine)

    def _combined(self, op: str, old: Any, new: Any, lanes: int) -> Any:
        if op == "set":
            return new
        x, y = variable(0, self.dtype), variable(1, self.dtype)
        [value] = lower(self.b, [cast(wide(x) + wide(y), self.dtype)], {x: old, y: new}, lanes)
        return value

    def _line(self, op: str, bases: Sequence[Any], strides: Sequence[Any], length: Any, low: Any, high: Any) -> None:
        b, lanes = self.b, self.lanes
        place, mine = self._place(bases[2], low, high)
        target, source = self.operands[:2]
        with b.if_then(mine):
            out = at(b, bases[0], b.mul(place, self.stride))
            with loop(b, i64(0), length, lanes) as j:
                mask = first_lanes(b, b.sub(length, j), lanes)
                new = source.load(b, bases[1], strides[1], j, lanes, mask)
                old = target.load(b, out, strides[0], j, lanes, mask) if op == "add" else None
                target.store(b, self._combined(op, old, new, lanes), out, strides[0], j, lanes, mask)

    def _one(self, op: str, bases: Sequence[Any], low: Any, high: Any) -> None:
        b, kind = self.b, stored(self.dtype)
        place, mine = self._place(bases[2], low, high)
        with b.if_then(mine):
            out = at(b, bases[0], b.mul(place, self.stride))
            new = b.load(bases[1], typ=kind, align=1)
            old = b.load(out, typ=kind, align=1) if op == "add" else None
            b.store(self._combined(op, old, new, 0), out, align=1)
