"""Scan kernels: code generation. Each vector lane scans its own line.

Plan: the number of steps; extent of the innermost dimension of lines, a chunk's part of it and the number of parts; the
number of lines over the outer dimensions, a chunk's part and the rank; the operands' strides by line and by step; the
outer dimensions' extents and strides.
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
    NdIterator,
    Operand,
    at,
    first_lanes,
    i64,
    local,
    loop,
    smaller,
    stack_block,
    word,
)
from ..llvm.loop_nests import transpose_vectors as transpose
from ..llvm.lowering import lower, memory_type, splat, value_type
from ..scalar.scalar_ir import Node, cast, variable


class Emitter:
    """Emits one module.

    Args:
        steps, initial: those of `scan.Scan`.
        outputs, inputs: the arrays' dtypes.
        kinds: the operands' step kinds, outputs first: from line to line, or from step to step where transposed.
        lanes: lines of a vector.
        reverse: whether to scan from the end.
        max_lines: maximum lines scanned together.
    """

    def __init__(self, steps: Sequence[Node], initial: Sequence[Node], outputs: Sequence[np.dtype],
                 inputs: Sequence[np.dtype], kinds: str, lanes: int, reverse: bool, max_lines: int) -> None:
        self.steps, self.initial, self.lanes = steps, initial, lanes
        self.reverse, self.max_lines = reverse, max_lines
        self.operands = [Operand(dtype, step) for dtype, step in zip([*outputs, *inputs], kinds, strict=True)]
        self.count = len(outputs)
        self.variables = [variable(i, dtype) for i, dtype in
                          enumerate([*(each.dtype for each in initial), *inputs, np.dtype(np.int64)])]
        self.results = [cast(step, dtype) for step, dtype in zip(steps, outputs, strict=True)]

    def module(self, kind: str) -> str:
        """The module's text.

        Args:
            kind: "transposed" where every line is contiguous in memory, else "by lines".
        """
        module = ir.Module("scan")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, plan, chunk = body.args
        total = len(self.operands)
        bases = [b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(total)]
        self.n, extent, block, parts, lines, chunk_lines, rank = (word(b, plan, i) for i in range(7))
        self.inner = [word(b, plan, 7 + i) for i in range(total)]
        self.along = [word(b, plan, 7 + total + i) for i in range(total)]
        start = b.mul(b.srem(chunk, parts), block)
        first = b.mul(b.sdiv(chunk, parts), chunk_lines)
        last = smaller(b, b.add(first, chunk_lines), lines)
        count = smaller(b, block, b.sub(extent, start))
        extents = at(b, plan, 8 * (7 + 2 * total))
        moved = [at(b, base, b.mul(start, stride)) for base, stride in zip(bases, self.inner, strict=True)]
        walk = NdIterator(b, moved, rank, extents, b.gep(extents, [rank], source_etype=I64), first)
        scan = self._transposed if kind == "transposed" else self._by_lines
        with loop(b, first, last):
            scan(walk.pointers(b), count)
            walk.advance(b)
        b.ret_void()
        return str(module)

    def _place(self, step: Any, width: int = 1) -> Any:
        """The index of a step's elements, or the lowest of `width` steps."""
        b = self.b
        return b.sub(b.sub(self.n, i64(width)), step) if self.reverse else step

    def _stepped(self, states: Sequence[Any], elements: Sequence[Any], step: Any) -> tuple[list[Any], list[Any]]:
        """The states after a step, and the values to store."""
        values = dict(zip(self.variables, [*states, *elements, splat(self.b, step, self.lanes)], strict=True))
        lowered = lower(self.b, [*self.steps, *self.results], values, self.lanes)
        return lowered[:len(self.steps)], lowered[len(self.steps):]

    def _initial(self) -> list[Any]:
        return lower(self.b, self.initial, {}, self.lanes)

    # ----- lines side by side in memory ---------------------------------------------------------

    def _by_lines(self, bases: Sequence[Any], count: Any) -> None:
        """Scan `count` lines step by step; their states are on the stack."""
        b, lanes = self.b, self.lanes
        memories = [stack_block(b, each.dtype, self.max_lines) for each in self.initial]
        with loop(b, i64(0), count, lanes) as j:
            for memory, value in zip(memories, self._initial(), strict=True):
                b.store(value, self._state(memory, value.type, j), align=1)
        with loop(b, i64(0), self.n) as k:
            place = self._place(k)
            runs = [at(b, base, b.mul(place, stride)) for base, stride in zip(bases, self.along, strict=True)]
            full_end = b.sub(count, b.srem(count, i64(lanes)))
            with loop(b, i64(0), full_end, lanes) as j:
                self._step_lines(memories, runs, k, j, None)
            with loop(b, full_end, count, lanes) as j:
                self._step_lines(memories, runs, k, j, first_lanes(b, b.sub(count, j), lanes))

    def _state(self, memory: Any, type_: Any, j: Any) -> Any:
        return self.b.gep(memory, [j], source_etype=type_.element)

    def _step_lines(self, memories: Sequence[Any], runs: Sequence[Any], k: Any, j: Any, mask: Any) -> None:
        b, lanes, count = self.b, self.lanes, self.count
        types = [value_type(each.dtype, lanes) for each in self.initial]
        places = [self._state(memory, type_, j) for memory, type_ in zip(memories, types, strict=True)]
        states = [b.load(place, typ=type_, align=1) for place, type_ in zip(places, types, strict=True)]
        elements = [each.load(b, run, stride, j, lanes, mask) for each, run, stride in
                    zip(self.operands[count:], runs[count:], self.inner[count:], strict=True)]
        states, results = self._stepped(states, elements, k)
        for place, state in zip(places, states, strict=True):
            b.store(state, place, align=1)
        for each, value, run, stride in zip(self.operands, results, runs, self.inner, strict=False):
            each.store(b, value, run, stride, j, lanes, mask)

    # ----- contiguous lines, transposed in blocks -----------------------------------------------

    def _transposed(self, bases: Sequence[Any], count: Any) -> None:
        """Scan `count` lines, a vector of them at a time; missing lines repeat the last one."""
        b, lanes = self.b, self.lanes
        self.states = [local(b, value_type(each.dtype, lanes)) for each in self.initial]
        self.squares = [stack_block(b, each.dtype, 2 * lanes * lanes) for each in self.operands]
        last = b.sub(count, i64(1))
        with loop(b, i64(0), count, lanes) as group:
            rows = [smaller(b, b.add(group, i64(r)), last) for r in range(lanes)]
            lines = [[at(b, base, b.mul(row, stride)) for row in rows]
                     for base, stride in zip(bases, self.inner, strict=True)]
            for place, value in zip(self.states, self._initial(), strict=True):
                b.store(value, place)
            full_end = b.sub(self.n, b.srem(self.n, i64(2 * lanes)))
            with loop(b, i64(0), full_end, 2 * lanes) as k:
                self._block(lines, k)
            with loop(b, full_end, self.n) as k:
                self._single(lines, k)

    @contextmanager
    def _advance(self, elements: Sequence[Any], step: Any) -> Iterator[list[Any]]:
        """Load the states, compute a step, yield the values to store, and store the new states."""
        b = self.b
        states = [b.load(place, typ=value_type(each.dtype, self.lanes))
                  for place, each in zip(self.states, self.initial, strict=True)]
        states, results = self._stepped(states, elements, step)
        yield results
        for place, state in zip(self.states, states, strict=True):
            b.store(state, place)

    def _block(self, lines: Sequence[Sequence[Any]], k: Any) -> None:
        """Compute 2 · lanes steps: one cache line of each line."""
        b, lanes, count = self.b, self.lanes, self.count
        width = 2 * lanes
        place = self._place(k, width)
        for each, rows, square in zip(self.operands[count:], lines[count:], self.squares[count:], strict=True):
            if each.step == "c":
                self._load_transposed(each, rows, square, place)
        with loop(b, i64(0), i64(width)) as i:
            step = b.sub(i64(width - 1), i) if self.reverse else i
            at_step = b.mul(step, i64(lanes))
            elements = [self._lanes_of(square, each, at_step) if each.step == "c" else self._column(each, rows, i64(0))
                        for each, rows, square in zip(self.operands[count:], lines[count:], self.squares[count:],
                                                      strict=True)]
            with self._advance(elements, b.add(k, i)) as results:
                for each, value, square in zip(self.operands, results, self.squares, strict=False):
                    b.store(value, b.gep(square, [at_step], source_etype=memory_type(each.dtype)), align=1)
        for each, rows, square in zip(self.operands[:count], lines, self.squares, strict=False):
            self._store_transposed(each, rows, square, place)

    def _lanes_of(self, square: Any, each: Operand, index: Any) -> Any:
        kind = memory_type(each.dtype)
        return self.b.load(self.b.gep(square, [index], source_etype=kind), typ=ir.VectorType(kind, self.lanes), align=1)

    def _load_transposed(self, each: Operand, rows: Sequence[Any], square: Any, place: Any) -> None:
        b, lanes, kind = self.b, self.lanes, memory_type(each.dtype)
        halves = [[self._lanes_of(row, each, b.add(place, i64(half))) for row in rows] for half in (0, lanes)]
        for half, vectors in zip((0, lanes), halves, strict=True):
            for j, column in enumerate(transpose(b, vectors)):
                b.store(column, b.gep(square, [i64((half + j) * lanes)], source_etype=kind), align=1)

    def _store_transposed(self, each: Operand, rows: Sequence[Any], square: Any, place: Any) -> None:
        b, lanes, kind = self.b, self.lanes, memory_type(each.dtype)
        halves = [transpose(b, [self._lanes_of(square, each, i64((half + j) * lanes)) for j in range(lanes)])
                  for half in (0, lanes)]
        for r, row in enumerate(rows):
            for half, vectors in zip((0, lanes), halves, strict=True):
                b.store(vectors[r], b.gep(row, [b.add(place, i64(half))], source_etype=kind), align=1)

    def _column(self, each: Operand, rows: Sequence[Any], place: Any) -> Any:
        """A vector of one element of each line."""
        b, kind = self.b, memory_type(each.dtype)
        value = ir.Constant(ir.VectorType(kind, self.lanes), ir.Undefined)
        for r, row in enumerate(rows):
            one = b.load(b.gep(row, [place], source_etype=kind), typ=kind, align=1)
            value = b.insert_element(value, one, ir.Constant(I32, r))
        return value

    def _single(self, lines: Sequence[Sequence[Any]], k: Any) -> None:
        """Compute one step without transposing."""
        b, count = self.b, self.count
        place = self._place(k)
        elements = [self._column(each, rows, place if each.step == "c" else i64(0))
                    for each, rows in zip(self.operands[count:], lines[count:], strict=True)]
        with self._advance(elements, k) as results:
            for each, value, rows in zip(self.operands, results, lines, strict=False):
                for r, row in enumerate(rows):
                    b.store(b.extract_element(value, ir.Constant(I32, r)),
                            b.gep(row, [place], source_etype=memory_type(each.dtype)), align=1)
