"""Function skeleton of row kernels: plan fields, the walk over rows, and the runs of a row's elements.

Vectors are along a row or across `lanes` rows. Along, a per-row value is a scalar; across, it is a vector, whose lanes
beyond the last row are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import nontemporal_stores
from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I64,
    POINTER,
    LinearIterator,
    NdIterator,
    Operand,
    at,
    first_lanes,
    i64,
    local,
    loop,
    smaller,
    word,
)
from ..llvm.lowering import constant, lower
from ..llvm.reducers import Reducer
from ..scalar.scalar_ir import BOOL, Node, topological_order, variable
from .loop_nest import (
    CHUNK_COLUMNS,
    CHUNK_ROWS,
    FIRST,
    INNER_RANK,
    OUTER_RANK,
    PARTS,
    PIECE,
    PITCH,
    ROWS,
    RUN,
    SIDE,
    WIDTH,
    LoopNest,
    N,
    Operands,
)
from .schedule import Rows, Schedule


class Kind:
    """What determines a row kernel's code: its schedule and loop nest.

    Attributes:
        schedule: the loops.
        rows: the row operation.
        passes: indices of the loops that compute anything.
        per_row: expressions of the per-row results.
        operands, dtypes: outputs and inputs.
        monoids: the reducers of each loop's terms.
        totals: the reducer of the sums over rows.
        regions: (contents, dtype) of the parts of scratch memory.
    """

    def __init__(self, schedule: Schedule, rows: Rows, operands: Operands, dtypes: Sequence[np.dtype],
                 nest: LoopNest) -> None:
        self.schedule, self.rows, self.per_row = schedule, rows, rows.per_row
        self.operands, self.dtypes = operands, tuple(dtypes)
        self.nest, self.lanes = nest, nest.lanes
        self.passes = [k for k, each in enumerate(schedule.loops) if each.expressions]
        self.reducers = [Reducer(each.terms) for each in schedule.loops]
        self.totals = Reducer([("sum", x) for x in schedule.row_totals])
        first = operands.elementwise + operands.per_row
        self.regions = [("column", self.sum_into(first + i).dtypes[0]) for i in range(operands.columns)]
        self.regions += [("total", dtype) for dtype in self.totals.dtypes]
        if not nest.entire_rows:
            self.regions += [("state", dtype) for each in self.reducers for dtype in each.dtypes]
            self.regions += [("result", node.dtype) for each in schedule.loops for node in each.results]

    def sum_into(self, k: int) -> Reducer:
        """The reducer of column sum or total `k`."""
        column = k - self.operands.elementwise - self.operands.per_row
        op = self.rows.column_op(column) if column < self.operands.columns else "sum"
        return Reducer([(op, variable(0, self.dtypes[k]))])

    def stores_nontemporal(self, k: int) -> bool:
        """Whether loop k writes its elementwise outputs by non-temporal stores."""
        written = [i for i, _ in self.schedule.loops[k].outputs]
        return (self.nest.nontemporal and bool(written) and not self.nest.tail.single_vector
                and self.schedule.loops[k].work <= nontemporal_stores.MAX_WORK
                and all(self.nest.steps[i] == "c" and self.dtypes[i] != BOOL for i in written))

    def unroll(self, k: int) -> int:
        """Vectors per iteration of loop k."""
        work = self.schedule.loops[k].work
        return min(4 if work <= 6 else 2 if work <= 24 else 1, self.nest.tail.max_unroll)


class Function:
    """A function of a row kernel under construction, with its plan fields and operand addresses.

    Args:
        module: the function's module.
        name: the function's name.
        kind: the kernel's description.
    """

    def __init__(self, module: ir.Module, name: str, kind: Kind) -> None:
        self.kind, self.lanes, self.across = kind, kind.lanes, kind.nest.across
        function, self.b = kernel_entry.begin(module, name, kernel_entry.BODY)
        b, operands = self.b, kind.operands
        pointers, self.plan, self.chunk = function.args
        data = [b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                for i in range(operands.number + 1)]
        *self.bases, scratch = data
        (self.rows, self.chunk_rows, self.n, self.piece, self.run, self.side, self.pitch, self.width, self.parts,
         self.chunk_columns,
         self.outer_rank, self.inner_rank) = (word(b, self.plan, i) for i in (
             ROWS, CHUNK_ROWS, N, PIECE, RUN, SIDE, PITCH, WIDTH, PARTS, CHUNK_COLUMNS, OUTER_RANK, INNER_RANK))
        self.regions = [at(b, scratch, word(b, self.plan, FIRST + i)) for i in range(len(kind.regions))]
        self.walked, self.elements = operands.walked, operands.elements
        place = FIRST + len(kind.regions)
        self.transposed = [k for k, step in enumerate(kind.nest.steps) if step == "t"]
        self.operands = [Operand(dtype, "c" if step == "t" else step)
                         for dtype, step in zip(kind.dtypes, kind.nest.steps, strict=True)]
        self.inner = {k: word(b, self.plan, place + i) for i, k in enumerate(self.elements)}
        place += len(self.elements)
        self.distances = {k: word(b, self.plan, place + i) for i, k in enumerate(self.walked)}
        place += len(self.walked)
        self.outer = dict(self.distances)
        for k, operand in enumerate(self.operands):
            strides = self.outer if self.across else self.inner
            if operand.step != "s" and k in strides:
                strides[k] = i64(operand.dtype.itemsize if operand.step == "c" else 0)
            if k in self.transposed:
                self.inner[k] = i64(self.lanes * operand.dtype.itemsize)
        self.outer_extents = at(b, self.plan, 8 * place)
        self.outer_strides = b.gep(self.outer_extents, [self.outer_rank], source_etype=I64)
        skipped = b.mul(self.outer_rank, i64(len(self.walked)))
        self.inner_extents = b.gep(self.outer_strides, [skipped], source_etype=I64)
        self.inner_strides = b.gep(self.inner_extents, [self.inner_rank], source_etype=I64)
        self.first_input = operands.first_input
        self.first_column = operands.elementwise + operands.per_row

    def region(self, holds: str, number: int) -> tuple[Any, np.dtype]:
        """The address of a part of scratch memory, and its dtype."""
        matching = [(self.regions[i], dtype) for i, (each, dtype) in enumerate(self.kind.regions) if each == holds]
        return matching[number]

    # rows

    def walk(self, first: Any) -> NdIterator | LinearIterator:
        """The walk over rows, or blocks of rows, of the operands in `walked`, from row `first` on."""
        bases = [self.bases[k] for k in self.walked]
        if not self.kind.nest.flat_rows:
            return NdIterator(self.b, bases, self.outer_rank, self.outer_extents, self.outer_strides, first)
        taken = self.lanes if self.across else 1
        return LinearIterator(self.b, bases, [self.b.mul(self.distances[k], i64(taken)) for k in self.walked], first)

    def place(self, row: Any) -> tuple[Any, Any]:
        """The index of a row, or of a block's first row, and the number of its rows."""
        b = self.b
        if not self.across:
            return row, i64(1)
        lanes = i64(self.lanes)
        blocks = b.sdiv(b.add(self.side, i64(self.lanes - 1)), lanes)
        first = b.mul(b.srem(row, blocks), lanes)
        position = b.add(b.mul(b.sdiv(row, blocks), self.side), first)
        return position, smaller(b, lanes, b.sub(self.side, first))

    def mask(self, row: Any) -> Any:
        """The mask of a block's valid lanes; None for a single row."""
        return first_lanes(self.b, self.place(row)[1], self.lanes) if self.across else None

    def of_row(self, pointers: dict[int, Any], mask: Any) -> dict[Node, Any]:
        """The inputs that are constant along a row."""
        known = {}
        for node in self._row_inputs():
            if node.const < self.kind.operands.inputs:
                known[node] = self.row_load(self.first_input + node.const, pointers, mask)
        return known

    def _row_inputs(self) -> list[Node]:
        expressions = [*self.kind.schedule.row_values.values(), *self.kind.per_row, *self.kind.schedule.row_totals]
        return [node for node in topological_order(expressions) if node.op == "input"]

    def row_load(self, k: int, pointers: dict[int, Any], mask: Any) -> Any:
        """Load an operand's per-row value: a scalar, or a vector for a block's rows."""
        if not self.across:
            return Operand(self.operands[k].dtype, "b").load(self.b, pointers[k], None, None, 0)
        return self.operands[k].load(self.b, pointers[k], self.outer[k], i64(0), self.lanes, mask)

    def row_store(self, k: int, value: Any, pointers: dict[int, Any], mask: Any) -> None:
        """Store an operand's per-row value, or a vector of them for a block's rows."""
        if self.across:
            self.operands[k].store(self.b, value, pointers[k], self.outer[k], i64(0), self.lanes, mask)
            return
        self.scalar_store(k, value, pointers[k])

    def scalar_store(self, k: int, value: Any, pointer: Any) -> None:
        """Store one element of an operand."""
        self.operands[k].store_one(self.b, value, pointer)

    def row_values(self, expressions: Sequence[Node], known: dict[Node, Any]) -> list[Any]:
        """Compute per-row expressions."""
        return lower(self.b, expressions, known, self.lanes if self.across else 0)

    def or_zero(self, value: Any, empty: Any) -> Any:
        """The sum, but +0 instead of -0 where it is `empty`."""
        scalar = value.type.element if isinstance(value.type, ir.VectorType) else value.type
        if isinstance(scalar, ir.IntType):
            return value
        return self.b.select(empty, constant(0.0, value.type), value)

    # a row's elements

    def place_of(self, element: Any) -> Any:
        """The index of an element, or of a vector with one element per lane, in a row buffer."""
        return self.b.mul(element, i64(self.lanes)) if self.across else element

    def runs(self, pointers: dict[int, Any], start: Any, stop: Any, limit: int | None,
             visit: Callable[[dict[int, Any], Any, Any], None]) -> None:
        """Visit a row's elements from `start` to `stop` by runs of uniform stride, of at limit `limit` elements.

        Args:
            pointers: the row's address in each of `elements`.
            visit: called with the addresses of the first element, its index, and the length of the run.
        """
        b, keys = self.b, [k for k in self.elements if k in pointers]

        def further(here: dict[int, Any], offset: Any) -> dict[int, Any]:
            return {k: at(b, here[k], b.mul(offset, self.inner[k])) for k in keys}

        if self.kind.nest.flat_elements and limit is None:
            visit(further(pointers, start), start, b.sub(stop, start))
            return
        if self.kind.nest.flat_elements:
            assert limit is not None
            with loop(b, start, stop, limit) as place:
                visit(further(pointers, place), place, smaller(b, i64(limit), b.sub(stop, place)))
            return
        bases = [pointers.get(k, self.bases[k]) for k in self.elements]
        walk = NdIterator(b, bases, self.inner_rank, self.inner_extents, self.inner_strides, b.sdiv(start, self.run))
        places, offsets = local(b, I64), local(b, I64)
        b.store(start, places)
        b.store(b.srem(start, self.run), offsets)
        head, body, after = (b.append_basic_block(name) for name in ("runs", "run", "ran"))
        b.branch(head)
        b.position_at_end(head)
        place = b.load(places, typ=I64)
        b.cbranch(b.icmp_signed("<", place, stop), body, after)
        b.position_at_end(body)
        offset = b.load(offsets, typ=I64)
        length = smaller(b, b.sub(self.run, offset), b.sub(stop, place))
        if limit is not None:
            length = smaller(b, length, i64(limit))
        here = dict(zip(self.elements, walk.pointers(b), strict=True))
        visit(further(here, offset), place, length)
        b.store(b.add(place, length), places)
        on = b.add(offset, length)
        b.store(on, offsets)
        with b.if_then(b.icmp_signed("==", on, self.run)):
            b.store(i64(0), offsets)
            walk.advance(b)
        b.branch(head)
        b.position_at_end(after)
