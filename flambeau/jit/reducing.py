"""The code of reductions: blocks of elements to states, states merged pairwise, and results written.

The plan of a call is a list of integers: the inner extent `n`, the columns taken together, the number of pieces that
the reduced elements are cut into and their size, the number of blocks that the kept places are cut into and their
size, how many places are kept, how many elements are reduced, the rows of the outer kept and outer reduced
dimensions and their ranks, the inner strides, and for the two walks extents and strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from . import calling
from .expression import ordered
from .loops import (
    I64,
    POINTER,
    Operand,
    Walk,
    at,
    first_lanes,
    i64,
    local,
    loop,
    number_range,
    smaller,
    word,
)
from .lowering import computed, lower, splat, stored
from .monoid import Monoid

#: elements that an accumulator takes in, for each lane, before states are merged pairwise
BLOCK = 16
#: merged blocks of blocks, at most: as many bits as their counter has
LEVELS = 40

#: the plan's integers
N, WIDE, PIECES, PIECE, BLOCKS, TALL, KEPT, COUNT, KEPT_ROWS, REDUCED_ROWS, KEPT_RANK, REDUCED_RANK, FIRST = range(13)


class Writer:
    """Writes one module: for these terms, and inputs and outputs that step so along the innermost dimension."""

    def __init__(self, monoid: Monoid, inputs: Sequence[np.dtype], steps: str, lanes: int, unroll: int,
                 group: int, columns: int) -> None:
        self.monoid, self.lanes, self.unroll, self.group = monoid, lanes, unroll, group
        self.columns = columns
        self.results = [Operand(dtype, step) for dtype, step in zip(monoid.results, steps, strict=False)]
        self.operands = [Operand(dtype, step) for dtype, step in zip(inputs, steps[len(self.results):], strict=True)]
        self.inputs = {node.const: node for node in ordered(monoid.expressions) if node.op == "input"}
        self.types = [computed(dtype, lanes) for dtype in monoid.dtypes]

    def module(self, along: bool) -> str:
        """The module's text: `call`, which does everything."""
        module = ir.Module("reduction")
        body, self.b = calling.begin(module, "body", calling.BODY)
        body.linkage = "internal"
        self._read(body)
        (self._along if along else self._across)()
        self.b.ret_void()
        combine, self.b = calling.begin(module, "combine", calling.BODY)
        combine.linkage = "internal"
        self._read(combine)
        self._combine(along)
        self.b.ret_void()
        calling.emit_call(module, body, len(self.results) + 1 + len(self.operands), combine, PIECES)
        return str(module)

    # what the plan says

    def _read(self, function: ir.Function) -> None:
        b = self.b
        pointers, self.plan, self.chunk = function.args
        data = [b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                for i in range(len(self.results) + 1 + len(self.operands))]
        self.scratch = data.pop(len(self.results))
        self.bases = data
        self.n, self.pieces, self.piece, self.kept, self.count = (
            word(b, self.plan, i) for i in (N, PIECES, PIECE, KEPT, COUNT))
        self.kept_rank, self.reduced_rank = word(b, self.plan, KEPT_RANK), word(b, self.plan, REDUCED_RANK)
        every = [*self.results, *self.operands]
        self.strides = [word(b, self.plan, FIRST + i) if each.step == "s"
                        else i64(each.dtype.itemsize if each.step == "c" else 0) for i, each in enumerate(every)]
        self.kept_extents = at(b, self.plan, 8 * (FIRST + len(every)))
        self.kept_strides = b.gep(self.kept_extents, [self.kept_rank], source_etype=I64)
        skipped = b.mul(self.kept_rank, i64(len(every)))
        self.reduced_extents = b.gep(self.kept_strides, [skipped], source_etype=I64)
        self.reduced_strides = b.gep(self.reduced_extents, [self.reduced_rank], source_etype=I64)
        lanes = i64(self.lanes)
        pitch = b.mul(b.sdiv(b.add(self.kept, i64(self.lanes - 1)), lanes), lanes)
        self.pitch = pitch
        # the scratch memory: for each component of the state, [pieces][pitch]
        self.slots, offset = [], i64(0)
        for dtype in self.monoid.dtypes:
            self.slots.append(at(b, self.scratch, offset))
            offset = b.add(offset, b.mul(b.mul(self.pieces, pitch), i64(dtype.itemsize)))

    def _kept_walk(self, bases: Sequence[Any], row: Any) -> Walk:
        return Walk(self.b, bases, self.kept_rank, self.kept_extents, self.kept_strides, row)

    def _reduced_walk(self, bases: Sequence[Any], row: Any) -> Walk:
        return Walk(self.b, bases, self.reduced_rank, self.reduced_extents, self.reduced_strides, row)

    # states

    def _variables(self, count: int | None = None) -> list[Any]:
        return [local(self.b, type_, count) for type_ in self.types]

    def _write(self, places: Sequence[Any], state: Sequence[Any]) -> None:
        for place, value in zip(places, state, strict=True):
            self.b.store(value, place, align=1)

    def _value(self, places: Sequence[Any], types: Sequence[ir.Type] | None = None) -> list[Any]:
        return [self.b.load(place, typ=type_, align=1)
                for place, type_ in zip(places, types or self.types, strict=True)]

    def _slot(self, piece: Any, position: Any) -> list[Any]:
        """Where the state of a piece is kept, for the kept place number `position`."""
        index = self.b.add(self.b.mul(piece, self.pitch), position)
        return [self.b.gep(slot, [index], source_etype=stored(dtype))
                for slot, dtype in zip(self.slots, self.monoid.dtypes, strict=True)]

    def _lifted(self, pointers: Sequence[Any], index: Any, mask: Any, place: Any) -> list[Any]:
        """The states of the elements from `index` on, those hidden by the mask with no effect."""
        b, first = self.b, len(self.results)
        values = {node: self.operands[i].load(b, pointers[i], self.strides[first + i], index, self.lanes, mask)
                  for i, node in self.inputs.items()}
        return self.monoid.lift(b, lower(b, self.monoid.expressions, values, self.lanes), place, self.lanes)

    def _masked(self, mask: Any, state: Sequence[Any]) -> list[Any]:
        return [self.b.select(mask, value, none)
                for value, none in zip(state, self.monoid.identity(self.lanes), strict=True)]

    def _carry(self, state: Sequence[Any], bits: Any, level_of: Any) -> None:
        """Add a block's state to a binary counter whose set bits are states: each carry merges two."""
        b = self.b
        current = self._variables()
        self._write(current, state)
        level = local(b, I64)
        b.store(i64(0), level)
        rest = local(b, I64)
        b.store(bits, rest)
        head, merge, after = (b.append_basic_block(name) for name in ("carry", "merge", "carried"))
        b.branch(head)
        b.position_at_end(head)
        left = b.load(rest, typ=I64)
        b.cbranch(b.icmp_signed("!=", b.and_(left, i64(1)), i64(0)), merge, after)
        b.position_at_end(merge)
        at_level = b.load(level, typ=I64)
        self._write(current, self.monoid.merge(b, self._value(level_of(at_level)), self._value(current)))
        b.store(b.add(at_level, i64(1)), level)
        b.store(b.lshr(left, i64(1)), rest)
        b.branch(head)
        b.position_at_end(after)
        self._write(level_of(b.load(level, typ=I64)), self._value(current))

    def _folded(self, bits: Any, level_of: Any) -> list[Any]:
        """All states of the counter merged."""
        b = self.b
        current = self._variables()
        self._write(current, self.monoid.identity(self.lanes))
        rest = local(b, I64)
        b.store(bits, rest)
        level = local(b, I64)
        b.store(i64(0), level)
        head, step, after = (b.append_basic_block(name) for name in ("fold", "level", "folded"))
        b.branch(head)
        b.position_at_end(head)
        left = b.load(rest, typ=I64)
        b.cbranch(b.icmp_signed("!=", left, i64(0)), step, after)
        b.position_at_end(step)
        at_level = b.load(level, typ=I64)
        with b.if_then(b.icmp_signed("!=", b.and_(left, i64(1)), i64(0))):
            self._write(current, self.monoid.merge(b, self._value(level_of(at_level)), self._value(current)))
        b.store(b.add(at_level, i64(1)), level)
        b.store(b.lshr(left, i64(1)), rest)
        b.branch(head)
        b.position_at_end(after)
        return self._value(current)

    def _levels(self, width: int = 1) -> Any:
        """Memory of the counter's states, `width` vectors each, and how to find one."""
        memory = self._variables(LEVELS * width)

        def find(level: Any, vector: Any = None) -> list[Any]:
            index = level if width == 1 else self.b.add(self.b.mul(level, i64(width)), vector)
            return [self.b.gep(each, [index], source_etype=type_)
                    for each, type_ in zip(memory, self.types, strict=True)]

        return find

    def _horizontal(self, state: Sequence[Any]) -> list[Any]:
        """The lanes' states merged into one."""
        b, lanes, parts = self.b, self.lanes, list(state)
        while lanes > 1:
            lanes //= 2
            halves = [[b.shuffle_vector(each, ir.Constant(each.type, ir.Undefined), ir.Constant(
                ir.VectorType(ir.IntType(32), lanes), list(range(start, start + lanes)))) for each in parts]
                for start in (0, lanes)]
            parts = self.monoid.merge(b, *halves)
        return [b.extract_element(each, ir.Constant(ir.IntType(32), 0)) for each in parts]

    # along: the innermost dimension is reduced

    def _along(self) -> None:
        b = self.b
        part = b.srem(self.chunk, self.pieces)
        block = b.sdiv(self.chunk, self.pieces)
        start = b.mul(part, self.piece)
        stop = smaller(b, b.add(start, self.piece), self.count)
        tall = word(b, self.plan, TALL)
        row = b.mul(block, tall)
        last = smaller(b, b.add(row, tall), self.kept)
        walk = self._kept_walk(self.bases, row)
        level_of, bits, first = self._levels(), local(b, I64), len(self.results)
        with loop(b, row, last) as position:
            pointers = walk.pointers(b)
            b.store(i64(0), bits)
            runs = self._reduced_walk(pointers[first:], b.sdiv(start, self.n))
            place, offset = local(b, I64), local(b, I64)
            b.store(start, place)
            b.store(b.srem(start, self.n), offset)
            head, some, after = (b.append_basic_block(name) for name in ("blocks", "block", "reduced"))
            b.branch(head)
            b.position_at_end(head)
            p = b.load(place, typ=I64)
            b.cbranch(b.icmp_signed("<", p, stop), some, after)
            b.position_at_end(some)
            o = b.load(offset, typ=I64)
            length = smaller(b, smaller(b, b.sub(self.n, o), b.sub(stop, p)),
                             i64(BLOCK * self.unroll * self.lanes))
            here = [at(b, pointer, b.mul(o, stride))
                    for pointer, stride in zip(runs.pointers(b), self.strides[first:], strict=True)]
            self._carry(self._block(here, length, p), b.load(bits, typ=I64), level_of)
            b.store(b.add(b.load(bits, typ=I64), i64(1)), bits)
            b.store(b.add(p, length), place)
            on = b.add(o, length)
            b.store(on, offset)
            with b.if_then(b.icmp_signed("==", on, self.n)):
                b.store(i64(0), offset)
                runs.advance(b)
            b.branch(head)
            b.position_at_end(after)
            state = self._horizontal(self._folded(b.load(bits, typ=I64), level_of))
            with b.if_else(b.icmp_signed("==", self.pieces, i64(1))) as (whole, partial):
                with whole:
                    self._result(state, pointers)
                with partial:
                    self._write(self._slot(part, position), state)
            walk.advance(b)

    def _result(self, state: Sequence[Any], pointers: Sequence[Any]) -> None:
        """Write the results of one kept place."""
        b = self.b
        found = self.monoid.finish(b, state, self.count, 0)
        for operand, value, pointer in zip(self.results, found, pointers, strict=False):
            kind = stored(operand.dtype)
            b.store(b.zext(value, kind) if operand.dtype == np.bool_ else value, pointer, align=1)

    def _block(self, pointers: Sequence[Any], length: Any, place: Any) -> list[Any]:
        """The state of `length` elements, the first of which is the reduced element number `place`."""
        b, lanes, unroll = self.b, self.lanes, self.unroll
        states = [self._variables() for _ in range(unroll)]
        for each in states:
            self._write(each, self.monoid.identity(lanes))

        def add(state: list[Any], index: Any, mask: Any) -> None:
            found = self._lifted(pointers, index, mask, self._places(b.add(place, index)))
            if mask is not None:
                found = self._masked(mask, found)
            self._write(state, self.monoid.merge(b, self._value(state), found))

        step = lanes * unroll
        whole = b.sub(length, b.srem(length, i64(step)))
        with loop(b, i64(0), whole, step) as index:
            for u, state in enumerate(states):
                add(state, b.add(index, i64(u * lanes)), None)
        with loop(b, whole, length, lanes) as index:
            add(states[0], index, first_lanes(b, b.sub(length, index), lanes))
        return self._tree([self._value(state) for state in states])

    def _places(self, start: Any) -> Any:
        if not self.monoid.finds_places:
            return None
        return self.b.add(splat(self.b, start, self.lanes), number_range(self.lanes, I64))

    def _tree(self, states: list[list[Any]]) -> list[Any]:
        while len(states) > 1:
            pairs = [self.monoid.merge(self.b, states[i], states[i + 1]) for i in range(0, len(states) - 1, 2)]
            states = pairs + states[len(pairs) * 2:]
        return states[0]

    # across: the innermost dimension is kept

    def _across(self) -> None:
        b, lanes, first = self.b, self.lanes, len(self.results)
        wide, tall = word(b, self.plan, WIDE), word(b, self.plan, TALL)
        part, rest = b.srem(self.chunk, self.pieces), b.sdiv(self.chunk, self.pieces)
        across = b.sdiv(b.add(self.n, b.sub(wide, i64(1))), wide)
        column = b.mul(b.srem(rest, across), wide)
        columns = smaller(b, wide, b.sub(self.n, column))
        row = b.mul(b.sdiv(rest, across), tall)
        last = smaller(b, b.add(row, tall), word(b, self.plan, KEPT_ROWS))
        start = b.mul(part, self.piece)
        stop = smaller(b, b.add(start, self.piece), self.count)
        walk = self._kept_walk([at(b, base, b.mul(column, stride))
                                for base, stride in zip(self.bases, self.strides, strict=True)], row)
        find = self._levels(-(-self.columns // lanes))
        bits = local(b, I64)
        with loop(b, row, last) as outer:
            pointers = walk.pointers(b)
            b.store(i64(0), bits)
            runs = self._reduced_walk(pointers[first:], start)
            whole = b.sub(stop, b.srem(b.sub(stop, start), i64(self.group)))
            for size, begin, end in ((self.group, start, whole), (1, whole, stop)):
                if size == 1 and self.group == 1 and begin is whole:
                    continue
                with loop(b, begin, end, size) as p:
                    self._rows(runs, size, p, columns, bits, find)
            with loop(b, i64(0), columns, lanes) as j:
                vector = b.sdiv(j, i64(lanes))
                mask = first_lanes(b, b.sub(columns, j), lanes)
                state = self._folded(b.load(bits, typ=I64), lambda level, at=vector: find(level, at))
                with b.if_else(b.icmp_signed("==", self.pieces, i64(1))) as (all_of_it, partial):
                    with all_of_it:
                        found = self.monoid.finish(b, state, self.count, lanes)
                        for operand, value, pointer, stride in zip(self.results, found, pointers, self.strides,
                                                                   strict=False):
                            operand.store(b, value, pointer, stride, j, lanes, mask)
                    with partial:
                        position = b.add(b.add(b.mul(outer, self.n), column), j)
                        self._write_some(self._slot(part, position), state, mask)
            walk.advance(b)

    def _write_some(self, places: Sequence[Any], state: Sequence[Any], mask: Any) -> None:
        for place, value, dtype in zip(places, state, self.monoid.dtypes, strict=True):
            Operand(dtype, "c").store(self.b, value, place, None, i64(0), self.lanes, mask)

    def _rows(self, runs: Walk, size: int, place: Any, columns: Any, bits: Any, find: Any) -> None:
        """Merge `size` rows, from the reduced element number `place`, into the counter's states."""
        b, lanes = self.b, self.lanes
        rows = []
        for _ in range(size):
            rows.append(runs.pointers(b))
            runs.advance(b)
        before = b.load(bits, typ=I64)
        with loop(b, i64(0), columns, lanes) as j:
            mask = first_lanes(b, b.sub(columns, j), lanes)
            states = []
            for q, pointers in enumerate(rows):
                here = splat(b, b.add(place, i64(q)), lanes) if self.monoid.finds_places else None
                states.append(self._lifted(pointers, j, mask, here))
            vector = b.sdiv(j, i64(lanes))
            self._carry(self._tree(states), before, lambda level, at=vector: find(level, at))
        b.store(b.add(before, i64(1)), bits)

    # the pieces put together

    def _combine(self, along: bool) -> None:
        b, lanes, first = self.b, self.lanes, len(self.results)
        distance = local(b, I64)
        b.store(i64(1), distance)
        head, level, after = (b.append_basic_block(name) for name in ("distances", "distance", "combined"))
        b.branch(head)
        b.position_at_end(head)
        s = b.load(distance, typ=I64)
        b.cbranch(b.icmp_signed("<", s, self.pieces), level, after)
        b.position_at_end(level)
        with loop(b, i64(0), b.sub(self.pieces, s), b.shl(s, i64(1))) as p:
            with loop(b, i64(0), self.kept, lanes) as j:
                here, there = self._slot(p, j), self._slot(b.add(p, s), j)
                self._write(here, self.monoid.merge(b, self._value(here), self._value(there)))
        b.store(b.shl(s, i64(1)), distance)
        b.branch(head)
        b.position_at_end(after)
        scalars = [computed(dtype) for dtype in self.monoid.dtypes]
        if along:
            walk = self._kept_walk(self.bases, i64(0))
            with loop(b, i64(0), self.kept) as position:
                self._result(self._value(self._slot(i64(0), position), scalars), walk.pointers(b))
                walk.advance(b)
            return
        walk = self._kept_walk(self.bases, i64(0))
        with loop(b, i64(0), word(b, self.plan, KEPT_ROWS)) as row:
            pointers = walk.pointers(b)
            with loop(b, i64(0), self.n) as j:
                position = b.add(b.mul(row, self.n), j)
                self._result(self._value(self._slot(i64(0), position), scalars),
                             [at(b, pointer, b.mul(j, stride))
                              for pointer, stride in zip(pointers[:first], self.strides, strict=False)])
            walk.advance(b)
