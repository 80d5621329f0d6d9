"""Row kernels: reductions over rows in several stages, fused with results per element, row, column and in total.

The row operation is `codegen.rows.schedule.Rows`, that of the CPU's kernels: softmax, norms, losses and their
gradients. A block computes whole rows, whose elements its threads hold in registers if there are at most 16 of them
each. Results per column and in total are added up by each block over its rows, and over the blocks by a second kernel:
in an order that depends on the shapes alone. Few long rows are divided between blocks, a launch for each loop.

>>> import numpy as np
>>> from flambeau.codegen.rows.schedule import Rows
>>> from flambeau.codegen.scalar.scalar_ir import exp, variable
>>> from flambeau.runtime.launch import Spec
>>> x, most, total = (variable(i, "float32") for i in range(3))
>>> softmax = Rows(stages=((("max", x),), (("sum", exp(x - most)),)), elementwise=(exp(x - most) / total,))
>>> spec = Spec.dense((4096, 768), np.dtype(np.float32))
>>> [one] = launches(softmax, [spec], [spec], 1)
>>> one.grid, one.kernel.threads
((2048, 1, 1), 256)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from ....runtime.launch import Spec
from ... import iteration_space
from ...rows.schedule import Rows, schedule
from ...scalar.reduction_ops import empty
from ...scalar.scalar_ir import Node
from ..launches import Argument, DeviceLaunch, launch
from . import code as row_code
from . import merging as row_merging
from .code import Operand, Problem
from .layout import FEW, FLAT, LONG, PIECE, row_layout
from .reducers import Reduction


def launches(rows: Rows, outs: Sequence[Spec], ins: Sequence[Spec], inner: int) -> list[DeviceLaunch]:
    """The launches of a row operation over arrays of one shape, whose last `inner` dimensions form a row.

    Args:
        rows: the row operation.
        outs: the outputs in the order of `Rows`: elementwise (full shape), per row (outer dimensions), column sums
            (inner dimensions), totals and row totals (0-d). Missing dimensions may have extent 1 instead.
        ins: the inputs, of shapes that broadcast to the full shape.
        inner: the number of dimensions of a row.

    Raises:
        ValueError: a reduction of no elements has no identity, or shapes do not match.
    """
    return list(_launches(rows, tuple(outs), tuple(ins), inner))


@lru_cache(4096)
def _launches(rows: Rows, outs: tuple[Spec, ...], ins: tuple[Spec, ...], inner: int) -> tuple[DeviceLaunch, ...]:
    shape = outs[0].shape if rows.elementwise else iteration_space.broadcast([each.shape for each in ins])
    if not any(each.size for each in outs):
        return ()
    depends = rows.stages or rows.per_row or rows.column_sums or rows.row_totals
    split = len(shape) - inner if depends else 0
    operands = _operands(rows, outs, ins, shape, split)
    count, length = prod(shape[:split]), prod(shape[split:])
    if not length:
        for stage in rows.stages:
            for op, _ in stage:
                empty(op)
    outputs = len(outs)
    of_row = [not any(each.inner) and length > 1 and bool(depends) for each in operands[outputs:]]
    plan = schedule(rows, of_row, [0] * len(ins), False)
    outer, inner_extents, operands = _collapsed(operands, shape[:split], shape[split:])
    problem = Problem(rows, plan, tuple(operands), outer, inner_extents, count, length, outputs, None)
    if not depends:
        return _flat(problem)
    if rows.stages and not (rows.column_sums or rows.totals or rows.row_totals) and length >= LONG and count < FEW:
        return _divided(problem)
    return _whole(problem)


def _operands(rows: Rows, outs: Sequence[Spec], ins: Sequence[Spec], shape: tuple[int, ...], split: int
              ) -> list[Operand]:
    first = len(rows.elementwise)
    last, rank = first + len(rows.per_row), len(shape)
    columns = last + len(rows.column_sums)
    operands = []
    for i, each in enumerate(outs):
        size = each.dtype.itemsize
        if i < first:
            strides = [s // size for s in iteration_space.checked_broadcast_strides(each.shape, each.strides, shape)]
            operands.append(Operand(each.dtype, tuple(strides[:split]), tuple(strides[split:])))
            continue
        begin, end = (0, split) if i < last else (split, rank) if i < columns else (0, 0)
        part = shape[begin:end]
        own = [s // size for s in (each.strides if each.shape == part else each.strides[begin:end])]
        if each.shape != part and prod(each.shape) != prod(part):
            raise ValueError(f"a result of shape {each.shape}, which should be {part}")
        own = [0 if n == 1 else s for n, s in zip(part, own, strict=True)]
        operands.append(Operand(each.dtype, tuple(own) if i < last else (0,) * split,
                                (0,) * (rank - split) if i < last else tuple(own) if i < columns else
                                (0,) * (rank - split)))
    for each in ins:
        strides = [s // each.dtype.itemsize for s in iteration_space.checked_broadcast_strides(
            each.shape, each.strides, shape)]
        operands.append(Operand(each.dtype, tuple(strides[:split]), tuple(strides[split:])))
    return operands


def _collapsed(operands: Sequence[Operand], outer: tuple[int, ...], inner: tuple[int, ...]
               ) -> tuple[tuple[int, ...], tuple[int, ...], list[Operand]]:
    """The dimensions outside and inside rows, and the operands, with neighbours merged; the order stays."""
    outer_dims = iteration_space.collapse(outer, [each.outer for each in operands], range(len(outer)))
    inner_dims = iteration_space.collapse(inner, [each.inner for each in operands], range(len(inner)))
    made = [Operand(each.dtype, tuple(reversed(a)), tuple(reversed(b)))
            for each, a, b in zip(operands, outer_dims.strides, inner_dims.strides, strict=True)]
    return tuple(reversed(outer_dims.extents)), tuple(reversed(inner_dims.extents)), made


def _whole(problem: Problem) -> tuple[DeviceLaunch, ...]:
    """Blocks of whole rows, then the sums over blocks."""
    rows = problem.rows
    sums = bool(rows.column_sums or rows.totals or rows.row_totals)
    layout = row_layout(problem.row_count, problem.length, sums, problem.registers, bool(rows.column_sums))
    kernel, parts = row_code.kernel(problem, layout)
    if not parts:
        return (launch(kernel, layout.blocks),)
    arguments = [Argument(i) for i in range(len(problem.operands))]
    return _with_finish(problem, DeviceLaunch(kernel, (layout.blocks, 1, 1), tuple(arguments)), parts, layout.blocks)


def _with_finish(problem: Problem, main: DeviceLaunch, parts: list[row_code.Part], blocks: int
                 ) -> tuple[DeviceLaunch, ...]:
    """The main launch with scratch memory for each block's sums, and the launches that merge them."""
    memory, offset = len(problem.operands), 0
    arguments, finishes = [Argument(i) for i in range(memory)], []
    for part in parts:
        places = []
        for dtype in part.reduction.dtypes:
            size = blocks * part.length
            places.append(Argument(memory, offset, size))
            offset += -(-size * dtype.itemsize // 256) * 256
        arguments += places
        kernel, grid = row_merging.merge_blocks(part, blocks)
        finishes.append(launch(kernel, grid, [Argument(part.output), *places]))
    scratch = offset
    first = main._replace(arguments=tuple(arguments), scratch=scratch)
    return (first, *(each._replace(scratch=scratch) for each in finishes))


def _flat(problem: Problem) -> tuple[DeviceLaunch, ...]:
    """Results that do not depend on rows: the elements as artificial rows."""
    total = problem.length
    length = min(total, FLAT)
    count = -(-total // length)
    strides = [list(each.inner) for each in problem.operands]
    dims = iteration_space.collapse(problem.inner, strides, iteration_space.memory_order(problem.inner, strides))
    extents = tuple(reversed(dims.extents)) or (1,)
    operands = tuple([each._replace(outer=(), inner=tuple(reversed(own)) or (0,))
                      for each, own in zip(problem.operands, dims.strides, strict=True)])
    made = problem._replace(operands=operands, outer=(), inner=extents, row_count=count, length=length, limit=total,
                            pieces=count)
    return _whole(made)


def _divided(problem: Problem) -> tuple[DeviceLaunch, ...]:
    """Few long rows: for each loop a launch over the rows' pieces, and one that merges the pieces' states."""
    pieces = -(-problem.length // PIECE)
    made = problem._replace(row_count=problem.row_count * pieces, length=PIECE, limit=problem.length, pieces=pieces)
    layout, merging = row_layout(made.row_count, PIECE, False, made.registers), row_layout(
        problem.row_count, pieces, False)
    memory, offset = len(problem.operands), 0
    operands = [Argument(i) for i in range(memory)]

    def scratch(dtype: np.dtype, count: int) -> Argument:
        nonlocal offset
        place = Argument(memory, offset, count)
        offset += -(-count * dtype.itemsize // 256) * 256
        return place

    found: list[DeviceLaunch] = []
    known: list[Node] = []
    places: list[Argument] = []  # of what is known
    loops = problem.plan.loops
    last = max(i for i, loop in enumerate(loops) if loop.terms)
    for i, loop in enumerate(loops):
        if not loop.terms and not loop.outputs:
            continue
        dtypes = [dtype for op, x in loop.terms for dtype in Reduction(op, x).dtypes]
        states = [scratch(dtype, made.row_count) for dtype in dtypes]
        found.append(launch(row_merging.reduce_pieces(made, layout, loop, known), layout.blocks,
                            [*operands, *places, *states]))
        if loop.terms:
            results = [scratch(x.dtype, problem.row_count) for x in loop.results]
            found.append(launch(row_merging.merge_pieces(problem, merging, loop, known, pieces, i == last),
                                merging.blocks, [*operands, *places, *states, *results]))
            known, places = [*known, *loop.results], [*places, *results]
    return tuple([each._replace(scratch=offset) for each in found])


__all__ = ["Rows", "launches"]
