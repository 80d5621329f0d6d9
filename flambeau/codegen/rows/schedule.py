"""What each loop over a row computes: expressions put where their variables are known, and nothing computed twice.

A row kernel with S stages makes at most S + 1 loops over a row's elements: one for each stage's reductions, and a
last one for what needs the last stage's results. Every other result is computed in the first loop that can. What is
the same for a whole row is computed once a row; what one loop has computed at some expense, and a later one needs
again, may be kept in a buffer as long as the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..scalar.reduction_ops import result_dtype
from ..scalar.scalar_ir import Node, cost, make, to_opmath, topological_order, variable

#: what a value costs (`expression.cost`), at least, that is kept rather than computed again
KEPT_COST = 8


class Rows(NamedTuple):
    """What a row kernel computes, over the elements of rows.

    An expression's variables are, first, the inputs, and after them the stages' results, one after the other: they
    are numbers of the row, of the dtype `term_dtype` says.

    Attributes:
        stages: reductions over a row's elements, pairs of an operation (sum, mean, prod, max, min, any, all,
            argmax, argmin) and an expression of inputs and of results of earlier stages.
        elementwise: expressions for every element.
        per_row: expressions of results, and of inputs that do not change along a row: one for every row.
        column_sums: expressions that are summed over all rows, element by element of a row.
        totals: expressions that are summed over all elements of all rows.
        row_totals: expressions like those of `per_row`, which are summed over all rows.
        column_ops: what is done with column sums instead of adding them up: one of sum, prod, max, min for each of
            them; none: all are sums.

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
        """What is done with column sum i over the rows."""
        return self.column_ops[i] if self.column_ops else "sum"


def term_dtype(op: str, expression: Node) -> np.dtype:
    """The dtype of the variable that stands for a stage's result: narrow floats stay float32.

    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> print(term_dtype("sum", variable(0, "float16")), term_dtype("sum", variable(0, "int8")))
    float32 int64
    """
    return result_dtype(op, to_opmath(expression))


class Loop(NamedTuple):
    """One loop over a row's elements.

    Attributes:
        terms: reductions.
        results: the variables that stand for what they give.
        outputs: pairs of an elementwise output's number and its expression.
        columns: pairs of a column sum's number and its expression.
        kept: pairs of a buffer's number and the expression that is written there.
    """

    terms: list[tuple[str, Node]]
    results: list[Node]
    outputs: list[tuple[int, Node]]
    columns: list[tuple[int, Node]]
    kept: list[tuple[int, Node]]

    @property
    def expressions(self) -> list[Node]:
        """All that is computed for an element."""
        return [x for _, x in (*self.terms, *self.outputs, *self.columns, *self.kept)]

    @property
    def variables(self) -> list[Node]:
        """The variables of these expressions."""
        return [node for node in topological_order(self.expressions) if node.op == "input"]

    @property
    def work(self) -> int:
        """What an element costs."""
        return cost(self.expressions) + len(self.terms) + len(self.columns)


class Schedule(NamedTuple):
    """The loops of a row kernel, in order, and what their variables stand for.

    Attributes:
        loops: one for each stage, though it may have nothing to do, and perhaps a last one.
        row_values: variables, and the row's expressions that they stand for.
        buffers: the variables that stand for the values that are kept of every element.
        row_totals: expressions of the row that are summed over all rows: first `Rows.totals`, then its `row_totals`.
    """

    loops: list[Loop]
    row_values: dict[Node, Node]
    buffers: list[Node]
    row_totals: list[Node]


_CONSTANT, _ROW, _ELEMENT = range(3)


def below(root: Node, known: Callable[[Node], bool]) -> list[Node]:
    """The nodes that `root` is made of, arguments first, down to those that are known; they and it are among them."""
    found: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, entered = stack.pop()
        if entered:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if not known(node):
                stack.extend((arg, False) for arg in reversed(node.args))
    return found


class _Places:
    """Where expressions can be computed: from which loop on, and whether once a row.

    Args:
        of_row: of every input, whether it is the same for all elements of a row.
        stages: how many results each stage has.
    """

    def __init__(self, of_row: Sequence[bool], stages: Sequence[int]) -> None:
        self.of_row = of_row
        self.stage_of = [k for k, count in enumerate(stages) for _ in range(count)]
        self.found: dict[Node, tuple[int, int]] = {}

    def __call__(self, node: Node) -> tuple[int, int]:
        if node not in self.found:
            for each in below(node, self.found.__contains__):
                self.found[each] = self._place(each)
        return self.found[node]

    def _place(self, node: Node) -> tuple[int, int]:
        if node in self.found:
            return self.found[node]
        if node.op == "constant":
            return 0, _CONSTANT
        if node.op != "input":
            below = [self.found[arg] for arg in node.args]
            return max(level for level, _ in below), max(kind for _, kind in below)
        if node.const < len(self.of_row):
            return 0, _ROW if self.of_row[node.const] else _ELEMENT
        number = node.const - len(self.of_row)
        if number >= len(self.stage_of):
            raise ValueError(f"{node} is neither one of {len(self.of_row)} inputs nor a stage's result")
        return self.stage_of[number] + 1, _ROW


def in_place(rows: Rows, inputs: int) -> tuple[bool, ...]:
    """Of every elementwise output, whether it may be written over an input: no later loop reads one.

    Args:
        rows: what is computed.
        inputs: how many of the variables are inputs.

    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> x, total = variable(0, "float32"), variable(1, "float32")
    >>> in_place(Rows(((("sum", x),),), (x + 1, x / total)), 1)
    (False, True)
    """
    place = _Places([False] * inputs, [len(stage) for stage in rows.stages])
    levels = [place(x)[0] for x in rows.elementwise]
    last = max([len(rows.stages) - 1, *levels, *(place(x)[0] for x in (*rows.column_sums, *rows.totals))])
    return tuple(level == last for level in levels)


def rebuilt(node: Node, known: Mapping[Node, Node]) -> Node:
    """The operation on what has become of its arguments."""
    return make(node.op, tuple([known[arg] for arg in node.args]), node.dtype, node.const) if node.args else node


class _Names:
    """New variables, numbered on from those that the caller has."""

    def __init__(self, first: int) -> None:
        self.next = first

    def __call__(self, dtype: np.dtype) -> Node:
        self.next += 1
        return variable(self.next - 1, dtype)


class _Keeping:
    """Which values of earlier loops a later one takes from buffers.

    Args:
        reading: of every input, what it costs to read an element.
    """

    def __init__(self, names: _Names, reading: Sequence[int]) -> None:
        self.names, self.reading = names, reading
        self.computed: dict[Node, int] = {}  # by which loop
        self.buffers: dict[Node, Node] = {}
        self.wanted: list[tuple[int, Node]] = []  # by buffer: the loop that writes it, and what
        self.forms: list[dict[Node, Node]] = []  # by loop: what became of each expression
        self.now: dict[Node, Node] = {}

    def begin(self) -> None:
        """The next loop begins."""
        for node in self.now:
            self.computed.setdefault(node, len(self.forms) - 1)
        self.now = {}
        self.forms.append(self.now)

    def worthwhile(self, node: Node) -> bool:
        """Whether it costs more to compute than to keep."""
        if node.op == "input":
            return node.const < len(self.reading) and self.reading[node.const] >= KEPT_COST
        return cost([node]) >= KEPT_COST

    def kept(self, node: Node) -> bool:
        """Whether it is taken from a buffer, if a later loop needs it."""
        return node in self.buffers or (node in self.computed and self.worthwhile(node))

    def __call__(self, root: Node) -> Node:
        """The expression with a buffer's variable in place of what is worth keeping."""
        for node in below(root, lambda node: node in self.now or self.kept(node)):
            if node in self.now:
                continue
            if self.kept(node):
                if node not in self.buffers:
                    self.buffers[node] = self.names(node.dtype)
                    self.wanted.append((self.computed[node], node))
                self.now[node] = self.buffers[node]
            else:
                self.now[node] = rebuilt(node, self.now)
        return self.now[root]


def schedule(rows: Rows, of_row: Sequence[bool], reading: Sequence[int], keep: bool) -> Schedule:
    """The loops that compute `rows`.

    Args:
        rows: what is computed.
        of_row: of every input, whether it is the same for all elements of a row.
        reading: of every input, what it costs to read an element.
        keep: whether values may be kept for later loops.

    Raises:
        ValueError: a stage's expression needs its own, or a later, result; or a row's result needs elements.
    """
    place = _Places(of_row, [len(stage) for stage in rows.stages])
    terms = [list(stage) for stage in rows.stages]
    for k, stage in enumerate(terms):
        for _, x in stage:
            if place(x)[0] > k:
                raise ValueError(f"stage {k} reduces {x}, which needs a result of its own or of a later stage")
    for x in (*rows.per_row, *rows.row_totals):
        if place(x)[1] == _ELEMENT:
            raise ValueError(f"{x} is not one value for a row")
    names = _Names(len(of_row))
    results = [[names(term_dtype(op, x)) for op, x in stage] for stage in terms]
    sums = []
    for x in rows.totals:  # a row's sum first, then the sum of those
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
        """The expression with a variable in place of all that is the same for a row."""
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

    keeping = _Keeping(names, reading)
    loops = []
    for k in range(last + 1):
        keeping.begin()
        rewritten = [(op, varying(to_opmath(x))) for op, x in terms[k]] if k < len(terms) else []
        outputs, columns = (
            [(i, varying(to_opmath(x) if summed else x)) for i, x in enumerate(found) if place(x)[0] == k]
            for found, summed in ((rows.elementwise, False), (rows.column_sums, True)))
        if keep:
            rewritten = [(op, keeping(x)) for op, x in rewritten]
            outputs, columns = ([(i, keeping(x)) for i, x in found] for found in (outputs, columns))
        loops.append(Loop(rewritten, results[k] if k < len(results) else [], outputs, columns, []))
    for number, (k, node) in enumerate(keeping.wanted):
        loops[k].kept.append((number, keeping.forms[k][node]))
    return Schedule(loops, row_values, list(keeping.buffers.values()), [*sums, *rows.row_totals])
