"""Schedules of row kernels: the expressions that each loop over a row's elements computes.

A row kernel with S stages has at most S + 1 loops: one per stage of reductions, and one for what needs the results of
the last stage. Every other expression is computed in the first loop where its variables are known. Row-invariant
expressions are computed once per row. Expensive values that a later loop uses again may be stored in a row buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..scalar.reduction_ops import result_dtype
from ..scalar.scalar_ir import Node, cost, make, to_opmath, topological_order, variable

#: minimum cost (`scalar_ir.cost`) of a value that is buffered rather than recomputed
MIN_BUFFERED_COST = 8


class Rows(NamedTuple):
    """A row operation: what a row kernel computes.

    The variables of expressions are the inputs, followed by the results of all stages, which are per-row values of
    dtype `term_dtype`.

    Attributes:
        stages: reductions over a row's elements: pairs of an operation (sum, mean, prod, max, min, any, all, argmax,
            argmin) and an expression of inputs and of results of earlier stages.
        elementwise: expressions of the elementwise outputs.
        per_row: expressions of results and row-invariant inputs: one value per row.
        column_sums: expressions that are reduced over all rows.
        totals: expressions that are summed over all elements of all rows.
        row_totals: per-row expressions that are summed over all rows.
        column_ops: the reductions of the column sums (sum, prod, max, min); empty if all are sums.

    >>> from flambeau.codegen.scalar.scalar_ir import exp, variable
    >>> x, most, total = (variable(i, "float32") for i in range(3))
    >>> softmax = Rows(stages=((("max", x),), (("sum", exp(x - most)),)), elementwise=(exp(x - most) / total,))
    """

    stages: tuple[tuple[tuple[str, Node], ...], ...] = ()
    elementwise: tuple[Node, ...] = ()
    per_row: tuple[Node, ...] = ()
    column_sums: tuple[Node, ...] = ()
    totals: tuple[Node, ...] = ()
    row_totals: tuple[Node, ...] = ()
    column_ops: tuple[str, ...] = ()

    def column_op(self, i: int) -> str:
        """The reduction of column sum i."""
        return self.column_ops[i] if self.column_ops else "sum"


def term_dtype(op: str, expression: Node) -> np.dtype:
    """The dtype of the variable of a stage's result; it is float32 for narrower floats.

    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> print(term_dtype("sum", variable(0, "float16")), term_dtype("sum", variable(0, "int8")))
    float32 int64
    """
    return result_dtype(op, to_opmath(expression))


class Loop(NamedTuple):
    """One loop over a row's elements.

    Attributes:
        terms: reductions.
        results: the variables of their results.
        outputs: pairs of an elementwise output's index and its expression.
        columns: pairs of a column sum's index and its expression.
        buffered: pairs of a row buffer's index and the expression stored in it.
    """

    terms: list[tuple[str, Node]]
    results: list[Node]
    outputs: list[tuple[int, Node]]
    columns: list[tuple[int, Node]]
    buffered: list[tuple[int, Node]]

    @property
    def expressions(self) -> list[Node]:
        """All expressions computed per element."""
        return [x for _, x in (*self.terms, *self.outputs, *self.columns, *self.buffered)]

    @property
    def variables(self) -> list[Node]:
        """The variables of these expressions."""
        return [node for node in topological_order(self.expressions) if node.op == "input"]

    @property
    def work(self) -> int:
        """The cost per element."""
        return cost(self.expressions) + len(self.terms) + len(self.columns)


class Schedule(NamedTuple):
    """The loops of a row kernel, in order, and the definitions of their variables.

    Attributes:
        loops: one per stage, possibly empty, and possibly a last one.
        row_values: variables of per-row expressions, and the expressions.
        buffers: variables of buffered values.
        row_totals: per-row expressions that are summed over all rows: first `Rows.totals`, then its `row_totals`.
    """

    loops: list[Loop]
    row_values: dict[Node, Node]
    buffers: list[Node]
    row_totals: list[Node]


_CONSTANT, _ROW, _ELEMENT = range(3)


def below(root: Node, known: Callable[[Node], bool]) -> list[Node]:
    """The subexpressions of `root` in topological order, arguments first, down to known ones; both ends included."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, entered = stack.pop()
        if entered:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if not known(node):
                stack.extend((arg, False) for arg in reversed(node.args))
    return order


class _Placement:
    """The first loop in which an expression can be computed, and whether it is constant, per row or per element.

    Args:
        of_row: for each input, whether it is constant along a row.
        stages: the number of results of each stage.
    """

    def __init__(self, of_row: Sequence[bool], stages: Sequence[int]) -> None:
        self.of_row = of_row
        self.stage_of = [k for k, count in enumerate(stages) for _ in range(count)]
        self.placements: dict[Node, tuple[int, int]] = {}

    def __call__(self, node: Node) -> tuple[int, int]:
        if node not in self.placements:
            for each in below(node, self.placements.__contains__):
                self.placements[each] = self._placement_of(each)
        return self.placements[node]

    def _placement_of(self, node: Node) -> tuple[int, int]:
        if node in self.placements:
            return self.placements[node]
        if node.op == "constant":
            return 0, _CONSTANT
        if node.op != "input":
            arguments = [self.placements[arg] for arg in node.args]
            return max(level for level, _ in arguments), max(kind for _, kind in arguments)
        if node.const < len(self.of_row):
            return 0, _ROW if self.of_row[node.const] else _ELEMENT
        number = node.const - len(self.of_row)
        if number >= len(self.stage_of):
            raise ValueError(f"{node} is neither one of {len(self.of_row)} inputs nor a stage's result")
        return self.stage_of[number] + 1, _ROW


def in_place(rows: Rows, inputs: int) -> tuple[bool, ...]:
    """For each elementwise output, whether it may be written over an input: no later loop reads one.

    Args:
        rows: the row operation.
        inputs: the number of inputs.

    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> x, total = variable(0, "float32"), variable(1, "float32")
    >>> in_place(Rows(((("sum", x),),), (x + 1, x / total)), 1)
    (False, True)
    """
    place = _Placement([False] * inputs, [len(stage) for stage in rows.stages])
    levels = [place(x)[0] for x in rows.elementwise]
    last = max([len(rows.stages) - 1, *levels, *(place(x)[0] for x in (*rows.column_sums, *rows.totals))])
    return tuple(level == last for level in levels)


def rebuilt(node: Node, known: Mapping[Node, Node]) -> Node:
    """The node with its arguments replaced."""
    return make(node.op, tuple([known[arg] for arg in node.args]), node.dtype, node.const) if node.args else node


class _FreshVariables:
    """New variables, numbered from `first`."""

    def __init__(self, first: int) -> None:
        self.next = first

    def __call__(self, dtype: np.dtype) -> Node:
        self.next += 1
        return variable(self.next - 1, dtype)


class _Buffering:
    """Chooses the values of earlier loops that later loops load from row buffers.

    Args:
        names: makes the buffers' variables.
        load_costs: for each input, the cost of loading an element.
    """

    def __init__(self, names: _FreshVariables, load_costs: Sequence[int]) -> None:
        self.names, self.load_costs = names, load_costs
        self.computed: dict[Node, int] = {}  # node -> loop
        self.buffers: dict[Node, Node] = {}
        self.stores: list[tuple[int, Node]] = []  # by buffer: the loop that stores it, and the node
        self.rewritten: list[dict[Node, Node]] = []  # by loop: node -> replacement
        self.current: dict[Node, Node] = {}

    def begin(self) -> None:
        """Begin the next loop."""
        for node in self.current:
            self.computed.setdefault(node, len(self.rewritten) - 1)
        self.current = {}
        self.rewritten.append(self.current)

    def worthwhile(self, node: Node) -> bool:
        """Whether recomputing costs more than buffering."""
        if node.op == "input":
            return node.const < len(self.load_costs) and self.load_costs[node.const] >= MIN_BUFFERED_COST
        return cost([node]) >= MIN_BUFFERED_COST

    def is_buffered(self, node: Node) -> bool:
        """Whether the current loop loads the node from a buffer."""
        return node in self.buffers or (node in self.computed and self.worthwhile(node))

    def __call__(self, root: Node) -> Node:
        """The expression with buffered subexpressions replaced by their buffers' variables."""
        for node in below(root, lambda node: node in self.current or self.is_buffered(node)):
            if node in self.current:
                continue
            if self.is_buffered(node):
                if node not in self.buffers:
                    self.buffers[node] = self.names(node.dtype)
                    self.stores.append((self.computed[node], node))
                self.current[node] = self.buffers[node]
            else:
                self.current[node] = rebuilt(node, self.current)
        return self.current[root]


def schedule(rows: Rows, of_row: Sequence[bool], load_costs: Sequence[int], keep: bool) -> Schedule:
    """The loops that compute `rows`.

    Args:
        rows: the row operation.
        of_row: for each input, whether it is constant along a row.
        load_costs: for each input, the cost of loading an element.
        keep: whether values may be buffered for later loops.

    Raises:
        ValueError: a stage uses results of its own or a later stage, or a per-row expression depends on elements.
    """
    place = _Placement(of_row, [len(stage) for stage in rows.stages])
    terms = [list(stage) for stage in rows.stages]
    for k, stage in enumerate(terms):
        for _, x in stage:
            if place(x)[0] > k:
                raise ValueError(f"stage {k} reduces {x}, which needs a result of its own or of a later stage")
    for x in (*rows.per_row, *rows.row_totals):
        if place(x)[1] == _ELEMENT:
            raise ValueError(f"{x} depends on a row's elements")
    names = _FreshVariables(len(of_row))
    results = [[names(term_dtype(op, x)) for op, x in stage] for stage in terms]
    sums = []
    for x in rows.totals:  # first the sum of each row, then their sum
        level = place(x)[0]
        if level == len(terms):
            terms.append([])
            results.append([])
        terms[level].append(("sum", x))
        results[level].append(names(term_dtype("sum", x)))
        sums.append(results[level][-1])
    last = max([len(terms) - 1, *(place(x)[0] for x in (*rows.elementwise, *rows.column_sums))])

    row_values: dict[Node, Node] = {}
    known: dict[Node, Node] = {}

    def varying(root: Node) -> Node:
        """The expression with row-invariant subexpressions replaced by variables."""
        for node in below(root, lambda node: node in known or place(node)[1] != _ELEMENT):
            if node in known:
                continue
            kind = place(node)[1]
            if kind == _ROW:
                known[node] = names(node.dtype)
                row_values[known[node]] = node
            else:
                known[node] = node if kind == _CONSTANT else rebuilt(node, known)
        return known[root]

    buffering = _Buffering(names, load_costs)
    loops = []
    for k in range(last + 1):
        buffering.begin()
        rewritten = [(op, varying(to_opmath(x))) for op, x in terms[k]] if k < len(terms) else []
        outputs, columns = (
            [(i, varying(to_opmath(x) if summed else x)) for i, x in enumerate(expressions) if place(x)[0] == k]
            for expressions, summed in ((rows.elementwise, False), (rows.column_sums, True)))
        if keep:
            rewritten = [(op, buffering(x)) for op, x in rewritten]
            outputs, columns = ([(i, buffering(x)) for i, x in pairs] for pairs in (outputs, columns))
        loops.append(Loop(rewritten, results[k] if k < len(results) else [], outputs, columns, []))
    for number, (k, node) in enumerate(buffering.stores):
        loops[k].buffered.append((number, buffering.rewritten[k][node]))
    return Schedule(loops, row_values, list(buffering.buffers.values()), [*sums, *rows.row_totals])
