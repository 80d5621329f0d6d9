"""Code of row kernels: the loops of a row operation's schedule, by the threads of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from ...rows.schedule import Loop, Rows, Schedule
from ...scalar.scalar_ir import Node, cast, eq, select, to_opmath, topological_order
from ..coordinates import INT32, constant, coordinates, index_dtype, offset
from ..kernel_ir import Kernel, KernelBuilder, substitute
from ..statements import Buffer, Local
from .block_reduction import reduce_groups
from .layout import RowLayout
from .reducers import Reduction


class Operand(NamedTuple):
    """An array's dtype, and its strides in elements over the outer dimensions and over those of a row."""

    dtype: np.dtype
    outer: tuple[int, ...]
    inner: tuple[int, ...]


class Problem(NamedTuple):
    """A row operation over arrays.

    Attributes:
        rows, plan: the operation and its loops.
        operands: outputs, then inputs.
        outer, inner: extents of the dimensions outside and inside rows.
        row_count, length: the number of rows, and of their elements.
        outputs: the number of outputs.
        limit: the number of elements of which `pieces` rows are parts; None: rows are whole.
        pieces: the number of parts of a row, each of which counts as a row.
    """

    rows: Rows
    plan: Schedule
    operands: tuple[Operand, ...]
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    row_count: int
    length: int
    outputs: int
    limit: int | None
    pieces: int = 1

    @property
    def index_dtype(self) -> np.dtype:
        """The dtype of indices."""
        extents = [*self.outer, *self.inner]
        return index_dtype(extents, [[*each.outer, *each.inner] for each in self.operands],
                           max(self.row_count * self.length, 1))

    @property
    def registers(self) -> int:
        """The registers that an element takes, with what is added up for its column."""
        sizes = [each.dtype.itemsize for each in self.operands[self.outputs:] if any(each.inner)]
        sizes += [x.dtype.itemsize for x in self.rows.column_sums]
        return max(1, sum(-(-size // 4) for size in sizes))


class Part(NamedTuple):
    """A result that each block adds up for its rows.

    Attributes:
        reduction: the reduction.
        length: the number of columns.
        output, operand: the output's number and layout; `extents` are those of its dimensions.
        reduced: the number of elements of each result, for means.
    """

    reduction: Reduction
    length: int
    output: int
    operand: Operand
    extents: tuple[int, ...]
    reduced: int


def parts_of(problem: Problem) -> list[Part]:
    """The results per column and in total."""
    rows, first = problem.rows, len(problem.rows.elementwise) + len(problem.rows.per_row)
    parts = []
    for i, x in enumerate(rows.column_sums):
        parts.append(Part(Reduction(rows.column_op(i), to_opmath(x)), problem.length, first + i,
                          problem.operands[first + i], problem.inner, problem.row_count))
    first += len(rows.column_sums)
    for i, x in enumerate(problem.plan.row_totals):
        parts.append(Part(Reduction("sum", x), 1, first + i, Operand(problem.operands[first + i].dtype, (), ()), (), 1))
    return parts


def kernel(problem: Problem, layout: RowLayout) -> tuple[Kernel, list[Part]]:
    """The kernel of whole rows, and the results that another kernel has to merge over the blocks.

    The parameters are the operands, then the states of those results, one after another.
    """
    parts = parts_of(problem)
    merged = bool(parts) and (layout.blocks > 1 or (bool(problem.rows.column_sums) and not layout.held))
    code = RowCode("rows", problem, layout)
    buffers = [[code.b.buffer(dtype) for dtype in part.reduction.dtypes] for part in parts] if merged else []
    _Sums(code, parts, buffers).emit()
    return code.b.kernel(), parts if merged else []


class RowCode:
    """The part of a row kernel that all variants share: threads, rows, elements, variables.

    Attributes:
        b: the builder.
        across, down: the thread's place along a row and among the rows of its block.
        active: whether the thread has a row; None if all do.
        row, piece: the row's index, and the part's.
    """

    def __init__(self, name: str, problem: Problem, layout: RowLayout, outputs: bool = True) -> None:
        self.problem, self.layout = problem, layout
        self.b = b = KernelBuilder(name, layout.threads)
        self.dtype = problem.index_dtype
        first = 0 if outputs else problem.outputs
        self.buffers: list[Buffer | None] = [None] * first
        self.buffers += [b.buffer(each.dtype) for each in problem.operands[first:]]
        thread = self.index(b.thread)
        self.down = thread / layout.across
        self.across = thread - self.down * layout.across
        self.zero = constant(0, self.dtype)
        self.held: dict[tuple[Node, int], Node] = {}
        self.known: dict[Node, Node] = {}

    def index(self, node: Node) -> Node:
        """A node of int32 in the dtype of indices."""
        return node if self.dtype == INT32 else cast(node, self.dtype)

    @property
    def is_loop(self) -> bool:
        """Whether a block has several rounds of rows."""
        return self.layout.blocks * self.layout.down < self.problem.row_count

    @contextmanager
    def each_row(self) -> Iterator[Node]:
        """The rows of the block, `down` at a time: the index of the round's first row."""
        step = self.layout.down
        start = self.index(self.b.block) * step
        if not self.is_loop:
            self._begin_row(start)
            yield start
            return
        with self.b.loop(start, constant(self.problem.row_count, self.dtype), constant(self.layout.blocks * step,
                                                                                    self.dtype)) as first:
            self._begin_row(first)
            yield first

    def _begin_row(self, first: Node) -> None:
        problem = self.problem
        self.held, self.known = {}, {}
        row = first + self.down
        self.active = None if problem.row_count % self.layout.down == 0 else row < problem.row_count
        self.number = row
        self.row = row / problem.pieces if problem.pieces > 1 else row
        self.piece = row - self.row * problem.pieces if problem.pieces > 1 else None
        places = coordinates(self.row, problem.outer[::-1])
        self.base = [offset(places, each.outer[::-1], self.zero) for each in problem.operands]

    def where(self, *conditions: Node | None) -> Node | None:
        """All of these conditions."""
        found: Node | None = None
        for each in conditions:
            if each is not None:
                found = each if found is None else found & each
        return found

    # ----- elements -----

    def element(self, i: Node, exact: bool) -> tuple[Node, Node | None]:
        """The position in the row of a thread's element, and whether there is one."""
        problem = self.problem
        inside = None if exact else i < problem.length
        if self.piece is None:
            return i, self.where(self.active, inside)
        position = self.piece * problem.length + i
        within = position < problem.limit if problem.limit is not None and (
            problem.length * problem.pieces != problem.limit) else None
        return position, self.where(self.active, inside, within)

    def each_element(self, body: Callable[[Node, int, Node | None], None]) -> None:
        """Call `body(position, number, valid)` for the thread's elements; the number is that among those held."""
        layout, length = self.layout, self.problem.length
        if layout.held:
            for k in range(layout.held):
                i = self.across + k * layout.across
                body(*_reordered(self.element(i, (k + 1) * layout.across <= length), k))
            return
        with self.b.loop(self.across, constant(length, self.dtype), constant(layout.across, self.dtype)) as i:
            self.held = {}
            body(*_reordered(self.element(i, True), 0))
        self.held = {}

    def values(self, expressions: Sequence[Node], position: Node, k: int, valid: Node | None) -> list[Node]:
        """Expressions of an element, from its inputs and from the row's values."""
        mapping: dict[Node, Node] = {}
        for node in topological_order(expressions):
            if node.op == "input":
                mapping[node] = self._variable(node, position, k, valid)
        return [substitute(each, mapping) for each in expressions]

    def _variable(self, node: Node, position: Node, k: int, valid: Node | None) -> Node:
        number = self.problem.outputs + node.const
        if node.const >= len(self.problem.operands) - self.problem.outputs or not any(
                self.problem.operands[number].inner):
            return self.row_value(node)
        if (node, k) not in self.held:
            self.held[node, k] = self.b.load(self.buffer(number), self.place(number, position), valid)
        return self.held[node, k]

    def buffer(self, number: int) -> Buffer:
        """The buffer of an operand."""
        buffer = self.buffers[number]
        assert buffer is not None
        return buffer

    def place(self, operand: int, position: Node) -> Node:
        """The offset of an element of the row in an operand."""
        places = coordinates(position, self.problem.inner[::-1])
        inner = offset(places, self.problem.operands[operand].inner[::-1], self.zero)
        return self.base[operand] + inner

    def row_value(self, node: Node) -> Node:
        """The value of a variable that is the same for the whole row."""
        stack = [node]
        while stack:
            each = stack[-1]
            if each in self.known:
                stack.pop()
                continue
            expression = self.problem.plan.row_values.get(each)
            if expression is None:
                number = self.problem.outputs + each.const
                if number >= len(self.problem.operands):
                    raise ValueError(f"{each} is used before its reduction is computed")
                self.known[each] = self.b.load(self.buffer(number), self.base[number], self.active)
                continue
            missing = [x for x in topological_order([expression]) if x.op == "input" and x not in self.known]
            if missing:
                stack.extend(missing)
                continue
            self.known[each] = substitute(expression, dict(self.known))
            stack.pop()
        return self.known[node]

    def load_row_values(self, expressions: Sequence[Node]) -> None:
        """Load what expressions of elements read of the row, before a loop over the elements whose scope would end."""
        if self.layout.held:
            return
        inputs = len(self.problem.operands) - self.problem.outputs
        for node in topological_order(expressions):
            if node.op == "input" and (node.const >= inputs or not any(
                    self.problem.operands[self.problem.outputs + node.const].inner)):
                self.row_value(node)

    def row_expression(self, expression: Node) -> Node:
        """An expression of the row's values."""
        return substitute(expression, {x: self.row_value(x) for x in topological_order([expression])
                                       if x.op == "input"})

    # ----- reductions -----

    def reduce(self, reductions: Sequence[Reduction], accumulate: Callable[[Callable[..., None]], None]
               ) -> list[list[Node]]:
        """The states of the row, known to all of its threads.

        Args:
            reductions: merge the states.
            accumulate: calls its argument with the states of each element, and whether there is one.
        """
        states = [each.identity for each in reductions]
        variables: list[list[Local]] = []
        if not self.layout.held:
            variables = [[self.b.local(x) for x in state] for state in states]

        def add(found: Sequence[Sequence[Node]], valid: Node | None) -> None:
            for n, (reduction, more) in enumerate(zip(reductions, found, strict=True)):
                kept = more if valid is None else [select(valid, x, y) for x, y in zip(more, reduction.identity,
                                                                                       strict=True)]
                if variables:
                    before = [self.b.get(x) for x in variables[n]]
                    for x, y in zip(variables[n], reduction.merge(before, kept), strict=True):
                        self.b.set(x, y)
                else:
                    states[n] = reduction.merge(states[n], kept)

        accumulate(add)
        if variables:
            states = [[self.b.get(x) for x in each] for each in variables]
        return [reduce_groups(self.b, each, state, self.layout.across)
                for each, state in zip(reductions, states, strict=True)]

    def first_of_row(self) -> Node | None:
        """Whether the thread is the first of an active row."""
        return self.where(self.active, None if self.layout.across == 1 else self.across < 1)


def _reordered(found: tuple[Node, Node | None], k: int) -> tuple[Node, int, Node | None]:
    return found[0], k, found[1]


class _Sums:
    """The kernel of whole rows: its loops, and the results that are added up over rows."""

    def __init__(self, code: RowCode, parts: Sequence[Part], buffers: Sequence[Sequence[Buffer]]) -> None:
        self.code, self.parts, self.buffers = code, parts, buffers
        self.columns = len(code.problem.rows.column_sums)
        b, layout = code.b, code.layout
        self.sums: dict[tuple[int, int], list[Local]] = {}
        for n, part in enumerate(parts):
            for k in range(1 if n >= self.columns else layout.held):
                self.sums[n, k] = [b.local(x) for x in part.reduction.identity]

    def emit(self) -> None:
        """Emit the kernel."""
        code = self.code
        with code.each_row() as first:
            for loop in code.problem.plan.loops:
                self._loop(loop, first)
            self._row_results()
        for n, part in enumerate(self.parts):
            if n >= self.columns:
                self._total(n, part)
            elif code.layout.held:
                self._column(n, part)

    def _loop(self, loop: Loop, first: Node) -> None:
        code = self.code
        reductions = [Reduction(op, x) for op, x in loop.terms]
        columns = [(i, self.parts[i].reduction.expression, x) for i, x in loop.columns]
        code.load_row_values(loop.expressions)

        def accumulate(add: Callable[..., None]) -> None:
            def body(position: Node, k: int, valid: Node | None) -> None:
                wanted = [*(each.expression for each in reductions), *(x for _, x in loop.outputs),
                          *(Reduction(self.parts[i].reduction.op, x).expression for i, _, x in columns)]
                found = code.values(wanted, position, k, valid)
                terms = len(reductions)
                add([each.lift(x, position) for each, x in zip(reductions, found, strict=False)], valid)
                for (i, _), x in zip(loop.outputs, found[terms:], strict=False):
                    code.b.store(code.buffer(i), code.place(i, position), x, valid)
                for (i, _, _), x in zip(columns, found[terms + len(loop.outputs):], strict=True):
                    self._add_column(i, k, position, x, valid, first)

            code.each_element(body)

        states = code.reduce(reductions, accumulate)
        length = code.problem.limit or code.problem.length
        for variable, reduction, state in zip(loop.results, reductions, states, strict=False):
            code.known[variable] = cast(reduction.finish(state, length), variable.dtype)

    def _row_results(self) -> None:
        code, rows = self.code, self.code.problem.rows
        where = code.first_of_row()
        first = len(rows.elementwise)
        for i, x in enumerate(rows.per_row, first):
            code.b.store(code.buffer(i), code.base[i], code.row_expression(x), where)
        for n in range(self.columns, len(self.parts)):
            reduction = self.parts[n].reduction
            more = reduction.lift(code.row_expression(reduction.expression), code.zero)
            self._merge(self.sums[n, 0], reduction, more, where)

    def _merge(self, variables: Sequence[Local], reduction: Reduction, more: Sequence[Node], where: Node | None
               ) -> None:
        b = self.code.b
        kept = more if where is None else [select(where, x, y) for x, y in zip(more, reduction.identity, strict=True)]
        for variable, value in zip(variables, reduction.merge([b.get(x) for x in variables], kept), strict=True):
            b.set(variable, value)

    def _add_column(self, i: int, k: int, position: Node, x: Node, valid: Node | None, first: Node) -> None:
        code, reduction = self.code, self.parts[i].reduction
        more = reduction.lift(x, code.number)
        if code.layout.held:
            self._merge(self.sums[i, k], reduction, more, valid)
            return
        assert code.layout.down == 1  # so that one thread has the column in all rounds
        b, block = code.b, code.index(code.b.block)
        at = block * code.problem.length + position
        later = code.where(valid, first > block)
        before = [select(first > block, b.load(buffer, at, later), y)
                  for buffer, y in zip(self.buffers[i], reduction.identity, strict=True)]
        for buffer, value in zip(self.buffers[i], reduction.merge(before, more), strict=True):
            b.store(buffer, at, value, valid)

    def _column(self, n: int, part: Part) -> None:
        """Merge the sums of the block's rows, and store them."""
        code, layout = self.code, self.code.layout
        b, reduction = code.b, part.reduction
        shared = [b.shared(dtype, layout.threads) for dtype in reduction.dtypes] if layout.down > 1 else []
        for k in range(layout.held):
            state = [b.get(x) for x in self.sums[n, k]]
            if shared:
                b.barrier()
                for buffer, x in zip(shared, state, strict=True):
                    b.store(buffer, b.thread, x)
                b.barrier()
                first = b.thread < layout.across
                for y in range(1, layout.down):
                    other = [b.load(buffer, b.thread + y * layout.across, first) for buffer in shared]
                    state = reduction.merge(state, other)
            column = code.across + k * layout.across
            inside = None if (k + 1) * layout.across <= part.length else column < part.length
            where = code.where(code.down < 1 if layout.down > 1 else None, inside)
            self._store_part(n, part, column, state, where)

    def _total(self, n: int, part: Part) -> None:
        code = self.code
        state = [code.b.get(x) for x in self.sums[n, 0]]
        state = reduce_groups(code.b, part.reduction, state, code.layout.threads)
        self._store_part(n, part, code.zero, state, eq(code.b.thread, 0))

    def _store_part(self, n: int, part: Part, column: Node, state: Sequence[Node], where: Node | None) -> None:
        code = self.code
        if self.buffers:
            at = code.index(code.b.block) * part.length + column
            for buffer, x in zip(self.buffers[n], state, strict=True):
                code.b.store(buffer, at, x, where)
            return
        places = coordinates(column, part.extents[::-1])
        at = offset(places, part.operand.inner[::-1], code.zero)
        code.b.store(code.buffer(part.output), at, part.reduction.finish(state, part.reduced), where)


__all__ = ["Operand", "Part", "Problem", "RowCode", "kernel", "parts_of"]
