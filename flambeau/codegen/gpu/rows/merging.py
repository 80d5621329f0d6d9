"""Kernels that merge states: of blocks, for results per column and in total; of pieces, for few long rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...rows.schedule import Loop
from ...scalar.scalar_ir import Node, cast
from ..coordinates import INT32, coordinates, count_blocks, offset
from ..kernel_ir import WARP, Kernel, KernelBuilder, number
from .block_reduction import reduce_groups
from .code import Part, Problem, RowCode
from .layout import RowLayout
from .reducers import Reduction

#: columns from which on each thread merges a column of its own: neighbours then read neighbouring states
MANY_COLUMNS, THREADS = 1 << 12, 128


def merge_blocks(part: Part, blocks: int) -> tuple[Kernel, int]:
    """The kernel that merges the states of all blocks, and its grid; its parameters are the output and the states."""
    lanes = 1 if part.length >= MANY_COLUMNS else WARP
    b = KernelBuilder("merge_blocks", THREADS)
    out, states = b.buffer(part.operand.dtype), [b.buffer(dtype) for dtype in part.reduction.dtypes]
    per_block = THREADS // lanes
    column = b.block * per_block + b.thread / lanes
    lane = b.thread - b.thread / lanes * lanes
    inside = column < part.length
    variables = [b.local(x) for x in part.reduction.identity]
    with b.loop(lane, number(blocks), number(lanes)) as i:
        more = [b.load(each, i * part.length + column, inside) for each in states]
        merged = part.reduction.merge([b.get(x) for x in variables], more)
        for variable, value in zip(variables, merged, strict=True):
            b.set(variable, value)
    state = reduce_groups(b, part.reduction, [b.get(x) for x in variables], lanes)
    at = offset(coordinates(column, part.extents[::-1]), part.operand.inner[::-1], number(0, INT32))
    b.store(out, at, part.reduction.finish(state, part.reduced), inside & (lane < 1))
    return b.kernel(), count_blocks(part.length, per_block)


def reduce_pieces(problem: Problem, layout: RowLayout, loop: Loop, known: Sequence[Node]) -> Kernel:
    """The kernel of one loop over pieces of rows: it reduces them to states and stores the loop's outputs.

    Its parameters are the operands, what earlier loops have found for each row, and the states.

    Args:
        problem: its rows are the pieces.
        layout: of the pieces.
        loop: the loop.
        known: the variables that earlier loops have found.
    """
    code = RowCode("reduce_pieces", problem, layout)
    results = [code.b.buffer(x.dtype) for x in known]
    terms = [Reduction(op, x) for op, x in loop.terms]
    states = [[code.b.buffer(dtype) for dtype in each.dtypes] for each in terms]
    with code.each_row():
        for variable, buffer in zip(known, results, strict=True):
            code.known[variable] = code.b.load(buffer, code.row, code.active)
        code.load_row_values(loop.expressions)

        def accumulate(add: Callable[..., None]) -> None:
            def body(position: Node, k: int, valid: Node | None) -> None:
                found = code.values([*(each.expression for each in terms), *(x for _, x in loop.outputs)], position, k,
                                    valid)
                add([each.lift(x, position) for each, x in zip(terms, found, strict=False)], valid)
                for (i, _), x in zip(loop.outputs, found[len(terms):], strict=True):
                    code.b.store(code.buffer(i), code.place(i, position), x, valid)

            code.each_element(body)

        for buffers, state in zip(states, code.reduce(terms, accumulate), strict=True):
            for buffer, x in zip(buffers, state, strict=True):
                code.b.store(buffer, code.number, x, code.first_of_row())
    return code.b.kernel()


def merge_pieces(problem: Problem, layout: RowLayout, loop: Loop, known: Sequence[Node], pieces: int, is_last: bool
                 ) -> Kernel:
    """The kernel that merges the pieces of each row; its parameters are those of `reduce_pieces`, and the results.

    Args:
        problem: of whole rows.
        layout: for rows of as many elements as there are pieces.
        loop: the loop.
        known: the variables that earlier loops have found.
        pieces: of a row.
        is_last: whether no later loop has reductions: the outputs per row are then stored.
    """
    code = RowCode("merge_pieces", problem._replace(length=pieces), layout)
    found_before = [code.b.buffer(x.dtype) for x in known]
    terms = [Reduction(op, x) for op, x in loop.terms]
    states = [[code.b.buffer(dtype) for dtype in each.dtypes] for each in terms]
    results = [code.b.buffer(x.dtype) for x in loop.results]
    rows = problem.rows
    with code.each_row():
        for variable, buffer in zip(known, found_before, strict=True):
            code.known[variable] = code.b.load(buffer, code.row, code.active)

        def accumulate(add: Callable[..., None]) -> None:
            def body(position: Node, k: int, valid: Node | None) -> None:
                at = code.row * pieces + position
                add([[code.b.load(buffer, at, valid) for buffer in each] for each in states], valid)

            code.each_element(body)

        found, where = code.reduce(terms, accumulate), code.first_of_row()
        for variable, reduction, state, buffer in zip(loop.results, terms, found, results, strict=True):
            code.known[variable] = cast(reduction.finish(state, problem.length), variable.dtype)
            code.b.store(buffer, code.row, code.known[variable], where)
        for i, x in enumerate(rows.per_row if is_last else (), len(rows.elementwise)):
            code.b.store(code.buffer(i), code.base[i], code.row_expression(x), where)
    return code.b.kernel()


__all__ = ["merge_blocks", "merge_pieces", "reduce_pieces"]
