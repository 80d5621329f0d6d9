"""Kernels that merge states: of blocks, for results per column and in total; of pieces, for few long rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def reduce_pieces(problem: Problem, layout: RowLayout, reductions: Sequence[Reduction]) -> Kernel:
    """The kernel that reduces pieces of rows to states; its parameters are the inputs and the states."""
    code = RowCode("reduce_pieces", problem, layout, outputs=False)
    states = [[code.b.buffer(dtype) for dtype in each.dtypes] for each in reductions]
    [loop] = [each for each in problem.plan.loops if each.terms]
    terms = [Reduction(op, x) for op, x in loop.terms]
    with code.each_row():
        def accumulate(add: Callable[..., None]) -> None:
            def body(position: Node, k: int, valid: Node | None) -> None:
                found = code.values([each.expression for each in terms], position, k, valid)
                add([each.lift(x, position) for each, x in zip(terms, found, strict=True)], valid)

            code.each_element(body)

        for buffers, state in zip(states, code.reduce(terms, accumulate), strict=True):
            for buffer, x in zip(buffers, state, strict=True):
                code.b.store(buffer, code.number, x, code.first_of_row())
    return code.b.kernel()


def merge_pieces(problem: Problem, layout: RowLayout, reductions: Sequence[Reduction], pieces: int) -> Kernel:
    """The kernel that merges the pieces of each row; its parameters are the operands and the states.

    Args:
        problem: of whole rows.
        layout: for rows of as many elements as there are pieces.
        reductions: of the only stage.
        pieces: of a row.
    """
    code = RowCode("merge_pieces", problem._replace(length=pieces), layout)
    states = [[code.b.buffer(dtype) for dtype in each.dtypes] for each in reductions]
    with code.each_row():
        def accumulate(add: Callable[..., None]) -> None:
            def body(position: Node, k: int, valid: Node | None) -> None:
                at = code.row * pieces + position
                add([[code.b.load(buffer, at, valid) for buffer in each] for each in states], valid)

            code.each_element(body)

        found = code.reduce(reductions, accumulate)
        variables = [x for loop in problem.plan.loops for x in loop.results]
        for variable, reduction, state in zip(variables, reductions, found, strict=True):
            code.known[variable] = cast(reduction.finish(state, problem.length), variable.dtype)
        for i, x in enumerate(problem.rows.per_row):
            code.b.store(code.buffer(i), code.base[i], code.row_expression(x), code.first_of_row())
    return code.b.kernel()


__all__ = ["merge_blocks", "merge_pieces", "reduce_pieces"]
