"""The code of scans: lines side by side as the lanes of vectors, step after step.

The plan of a call: how many steps; of the innermost dimension of lines its extent, a chunk's part of it and how many
such parts there are; of the outer dimensions the number of lines, a chunk's part and the rank; the operands' strides
from line to line and from step to step; the outer dimensions' extents and strides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I32,
    I64,
    POINTER,
    Operand,
    Walk,
    at,
    block_of,
    first_lanes,
    i64,
    local,
    loop,
    smaller,
    word,
)
from ..llvm.loop_nests import transposed as across
from ..llvm.lowering import computed, lower, splat, stored
from ..scalar.scalar_ir import Node, cast, variable


class Writer:
    """Writes one module.

    Args:
        steps, initial: as `scanning.Scan` has them.
        outputs, inputs: the arrays' dtypes.
        kinds: how the operands, outputs first, step from line to line; where lines are turned, from step to step.
        lanes: lines of a vector.
        back: whether the steps go from the end.
        wide: lines beside each other, at most.
    """

    def __init__(self, steps: Sequence[Node], initial: Sequence[Node], outputs: Sequence[np.dtype],
                 inputs: Sequence[np.dtype], kinds: str, lanes: int, back: bool, wide: int) -> None:
        self.steps, self.initial, self.lanes, self.back, self.wide = steps, initial, lanes, back, wide
        self.operands = [Operand(dtype, step) for dtype, step in zip([*outputs, *inputs], kinds, strict=True)]
        self.count = len(outputs)
        self.variables = [variable(i, dtype) for i, dtype in
                          enumerate([*(each.dtype for each in initial), *inputs, np.dtype(np.int64)])]
        self.results = [cast(step, dtype) for step, dtype in zip(steps, outputs, strict=True)]

    def module(self, kind: str) -> str:
        """The module's text.

        Args:
            kind: "turned" where every line lies together in memory, else "beside".
        """
        module = ir.Module("scan")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, plan, chunk = body.args
        total = len(self.operands)
        bases = [b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(total)]
        self.n, extent, block, parts, lines, tall, rank = (word(b, plan, i) for i in range(7))
        self.inner = [word(b, plan, 7 + i) for i in range(total)]
        self.along = [word(b, plan, 7 + total + i) for i in range(total)]
        start = b.mul(b.srem(chunk, parts), block)
        first = b.mul(b.sdiv(chunk, parts), tall)
        last = smaller(b, b.add(first, tall), lines)
        count = smaller(b, block, b.sub(extent, start))
        extents = at(b, plan, 8 * (7 + 2 * total))
        moved = [at(b, base, b.mul(start, stride)) for base, stride in zip(bases, self.inner, strict=True)]
        walk = Walk(b, moved, rank, extents, b.gep(extents, [rank], source_etype=I64), first)
        part = self._turned if kind == "turned" else self._beside
        with loop(b, first, last):
            part(walk.pointers(b), count)
            walk.advance(b)
        b.ret_void()
        return str(module)

    def _place(self, step: Any, width: int = 1) -> Any:
        """Where the elements of a step lie, or the first of `width` steps."""
        b = self.b
        return b.sub(b.sub(self.n, i64(width)), step) if self.back else step

    def _stepped(self, states: Sequence[Any], elements: Sequence[Any], step: Any) -> tuple[list[Any], list[Any]]:
        """The states after a step, and what is written of them."""
        values = dict(zip(self.variables, [*states, *elements, splat(self.b, step, self.lanes)], strict=True))
        found = lower(self.b, [*self.steps, *self.results], values, self.lanes)
        return found[:len(self.steps)], found[len(self.steps):]

    def _initial(self) -> list[Any]:
        return lower(self.b, self.initial, {}, self.lanes)

    # ----- lines beside each other ------------------------------------------------------------

    def _beside(self, bases: Sequence[Any], count: Any) -> None:
        """Scan `count` lines: the states of all of them after each step are kept in the function's memory."""
        b, lanes = self.b, self.lanes
        kept = [block_of(b, each.dtype, self.wide) for each in self.initial]
        with loop(b, i64(0), count, lanes) as j:
            for memory, value in zip(kept, self._initial(), strict=True):
                b.store(value, self._state(memory, value.type, j), align=1)
        with loop(b, i64(0), self.n) as k:
            place = self._place(k)
            runs = [at(b, base, b.mul(place, stride)) for base, stride in zip(bases, self.along, strict=True)]
            whole = b.sub(count, b.srem(count, i64(lanes)))
            with loop(b, i64(0), whole, lanes) as j:
                self._step_beside(kept, runs, k, j, None)
            with loop(b, whole, count, lanes) as j:
                self._step_beside(kept, runs, k, j, first_lanes(b, b.sub(count, j), lanes))

    def _state(self, memory: Any, type_: Any, j: Any) -> Any:
        return self.b.gep(memory, [j], source_etype=type_.element)

    def _step_beside(self, kept: Sequence[Any], runs: Sequence[Any], k: Any, j: Any, mask: Any) -> None:
        b, lanes, count = self.b, self.lanes, self.count
        types = [computed(each.dtype, lanes) for each in self.initial]
        places = [self._state(memory, type_, j) for memory, type_ in zip(kept, types, strict=True)]
        states = [b.load(place, typ=type_, align=1) for place, type_ in zip(places, types, strict=True)]
        elements = [each.load(b, run, stride, j, lanes, mask) for each, run, stride in
                    zip(self.operands[count:], runs[count:], self.inner[count:], strict=True)]
        states, results = self._stepped(states, elements, k)
        for place, state in zip(places, states, strict=True):
            b.store(state, place, align=1)
        for each, value, run, stride in zip(self.operands, results, runs, self.inner, strict=False):
            each.store(b, value, run, stride, j, lanes, mask)

    # ----- lines that are turned ----------------------------------------------------------------

    def _turned(self, bases: Sequence[Any], count: Any) -> None:
        """Scan `count` lines, some at a time. Where there are too few, the last one is scanned several times."""
        b, lanes = self.b, self.lanes
        self.states = [local(b, computed(each.dtype, lanes)) for each in self.initial]
        self.squares = [block_of(b, each.dtype, 2 * lanes * lanes) for each in self.operands]
        last = b.sub(count, i64(1))
        with loop(b, i64(0), count, lanes) as group:
            rows = [smaller(b, b.add(group, i64(r)), last) for r in range(lanes)]
            lines = [[at(b, base, b.mul(row, stride)) for row in rows]
                     for base, stride in zip(bases, self.inner, strict=True)]
            for place, value in zip(self.states, self._initial(), strict=True):
                b.store(value, place)
            whole = b.sub(self.n, b.srem(self.n, i64(2 * lanes)))
            with loop(b, i64(0), whole, 2 * lanes) as k:
                self._block(lines, k)
            with loop(b, whole, self.n) as k:
                self._single(lines, k)

    @contextmanager
    def _kept(self, elements: Sequence[Any], step: Any) -> Iterator[list[Any]]:
        """Do a step with the states that are kept, and keep the new ones; gives what is written."""
        b = self.b
        states = [b.load(place, typ=computed(each.dtype, self.lanes))
                  for place, each in zip(self.states, self.initial, strict=True)]
        states, results = self._stepped(states, elements, step)
        yield results
        for place, state in zip(self.states, states, strict=True):
            b.store(state, place)

    def _block(self, lines: Sequence[Sequence[Any]], k: Any) -> None:
        """Twice as many steps as there are lanes: a line of the cache, of each line, at once."""
        b, lanes, count = self.b, self.lanes, self.count
        width = 2 * lanes
        place = self._place(k, width)
        for each, rows, square in zip(self.operands[count:], lines[count:], self.squares[count:], strict=True):
            if each.step == "c":
                self._turn_in(each, rows, square, place)
        with loop(b, i64(0), i64(width)) as i:
            step = b.sub(i64(width - 1), i) if self.back else i
            at_step = b.mul(step, i64(lanes))
            elements = [self._lanes_of(square, each, at_step) if each.step == "c" else self._column(each, rows, i64(0))
                        for each, rows, square in zip(self.operands[count:], lines[count:], self.squares[count:],
                                                      strict=True)]
            with self._kept(elements, b.add(k, i)) as results:
                for each, value, square in zip(self.operands, results, self.squares, strict=False):
                    b.store(value, b.gep(square, [at_step], source_etype=stored(each.dtype)), align=1)
        for each, rows, square in zip(self.operands[:count], lines, self.squares, strict=False):
            self._turn_out(each, rows, square, place)

    def _lanes_of(self, square: Any, each: Operand, index: Any) -> Any:
        kind = stored(each.dtype)
        return self.b.load(self.b.gep(square, [index], source_etype=kind), typ=ir.VectorType(kind, self.lanes), align=1)

    def _turn_in(self, each: Operand, rows: Sequence[Any], square: Any, place: Any) -> None:
        b, lanes, kind = self.b, self.lanes, stored(each.dtype)
        halves = [[self._lanes_of(row, each, b.add(place, i64(half))) for row in rows] for half in (0, lanes)]
        for half, vectors in zip((0, lanes), halves, strict=True):
            for j, column in enumerate(across(b, vectors)):
                b.store(column, b.gep(square, [i64((half + j) * lanes)], source_etype=kind), align=1)

    def _turn_out(self, each: Operand, rows: Sequence[Any], square: Any, place: Any) -> None:
        b, lanes, kind = self.b, self.lanes, stored(each.dtype)
        halves = [across(b, [self._lanes_of(square, each, i64((half + j) * lanes)) for j in range(lanes)])
                  for half in (0, lanes)]
        for r, row in enumerate(rows):
            for half, vectors in zip((0, lanes), halves, strict=True):
                b.store(vectors[r], b.gep(row, [b.add(place, i64(half))], source_etype=kind), align=1)

    def _column(self, each: Operand, rows: Sequence[Any], place: Any) -> Any:
        """An element of each line."""
        b, kind = self.b, stored(each.dtype)
        value = ir.Constant(ir.VectorType(kind, self.lanes), ir.Undefined)
        for r, row in enumerate(rows):
            one = b.load(b.gep(row, [place], source_etype=kind), typ=kind, align=1)
            value = b.insert_element(value, one, ir.Constant(I32, r))
        return value

    def _single(self, lines: Sequence[Sequence[Any]], k: Any) -> None:
        """One step."""
        b, count = self.b, self.count
        place = self._place(k)
        elements = [self._column(each, rows, place if each.step == "c" else i64(0))
                    for each, rows in zip(self.operands[count:], lines[count:], strict=True)]
        with self._kept(elements, k) as results:
            for each, value, rows in zip(self.operands, results, lines, strict=False):
                for r, row in enumerate(rows):
                    b.store(b.extract_element(value, ir.Constant(I32, r)),
                            b.gep(row, [place], source_etype=stored(each.dtype)), align=1)
