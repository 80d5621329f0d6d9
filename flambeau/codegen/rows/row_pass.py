"""One pass over a row's elements: reductions, elementwise outputs, and column sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime import target
from ..llvm.loop_nests import I64, Operand, at, first_lanes, i64, lane_indices, local, loop, nontemporal_if_possible
from ..llvm.lowering import intrinsic, lower, splat
from ..llvm.pairwise_reduction import BLOCK, ReductionState
from ..scalar.reduction_ops import to_accumulator
from ..scalar.scalar_ir import Node
from .function import Function
from .schedule import Loop


class RowPass:
    """Generates one loop over a row's elements.

    Args:
        rows: the function under construction.
        k: the loop's index.
        buffers: addresses of the row buffers.
        columns: addresses of the column sums.
    """

    def __init__(self, rows: Function, k: int, buffers: Sequence[Any], columns: dict[int, Any]) -> None:
        self.rows, self.b, self.lanes, self.across = rows, rows.b, rows.lanes, rows.across
        self.loop: Loop = rows.kind.schedule.loops[k]
        self.reducer, self.unroll = rows.kind.reducers[k], rows.kind.unroll(k)
        self.states = ReductionState(rows.b, self.reducer, rows.lanes)
        self.buffers, self.columns = buffers, columns
        schedule, inputs = rows.kind.schedule, rows.kind.operands.inputs
        self.inputs = {node: rows.first_input + node.const for node in self.loop.variables if node.const < inputs}
        self.reads = {node: i for i, node in enumerate(schedule.buffers) if node in self.loop.variables}
        self.repeated = [node for node, k in self.inputs.items() if not self.across and rows.operands[k].step == "b"]
        self.nontemporal = rows.kind.stores_nontemporal(k)
        self.of_row: dict[Node, Any] = {}

    def __call__(self, pointers: dict[int, Any], known: dict[Node, Any], start: Any, stop: Any,
                 mask: Any) -> list[Any]:
        """Emit the loop over the elements from `start` to `stop`; returns the final states of its reductions.

        Args:
            pointers: addresses of the row or block of rows.
            known: per-row values computed so far.
            mask: the block's valid rows, or None.
        """
        b, rows = self.b, self.rows
        row_variables = [node for node in self.loop.variables if node in rows.kind.schedule.row_values]
        values = rows.row_values([rows.kind.schedule.row_values[node] for node in row_variables], known)
        self.of_row = {node: value if self.across else splat(b, value, self.lanes)
                       for node, value in zip(row_variables, values, strict=True)}
        states = [self.states.allocate_identity() for _ in range(self.unroll)]
        limit = BLOCK * self.unroll * (1 if self.across else self.lanes)
        pairwise = rows.kind.nest.long and bool(self.loop.terms)
        if pairwise:
            level_of, bits, since = self.states.allocate_levels(), local(b, I64), local(b, I64)
            b.store(i64(0), bits)
            b.store(i64(0), since)

        def visit(here: dict[int, Any], place: Any, length: Any) -> None:
            self._block(here, place, length, mask, states)
            if pairwise:
                taken = b.add(b.load(since, typ=I64), length)
                b.store(taken, since)
                with b.if_then(b.icmp_signed(">=", taken, i64(limit))):
                    self.states.carry(self.states.merge_tree([self.states.load(each) for each in states]),
                                      b.load(bits, typ=I64), level_of)
                    b.store(b.add(b.load(bits, typ=I64), i64(1)), bits)
                    b.store(i64(0), since)
                    for each in states:
                        self.states.store(each, self.reducer.identity(self.lanes))

        rows.runs(pointers, start, stop, limit if pairwise else None, visit)
        if not self.loop.terms:
            return []
        state = self.states.merge_tree([self.states.load(each) for each in states])
        if pairwise:
            self.states.store(states[0], state)
            state = self.states.fold(b.load(bits, typ=I64), level_of, states[0])
        return state if self.across else self.states.horizontal(state)

    def _block(self, here: dict[int, Any], place: Any, length: Any, mask: Any, states: Sequence[Any]) -> None:
        b, step = self.b, self.unroll * (1 if self.across else self.lanes)
        repeated = {node: self.rows.operands[self.inputs[node]].load(b, here[self.inputs[node]], None, None, self.lanes)
                    for node in self.repeated}
        single = step // self.unroll
        tail = self.rows.kind.nest.tail

        def last(index: Any) -> Any:
            """The mask of a single vector."""
            if self.across or tail.multiple:
                return mask
            return first_lanes(b, b.sub(length, index), self.lanes)

        if tail.single_vector:
            self._element(here, place, i64(0), last(i64(0)), states[0], repeated)
            return
        if self.unroll == 1 and not tail.multiple and not self.across and target.host().vector_bits >= 512:
            # masks are almost free here: a single masked loop halves the code
            with loop(b, i64(0), length, single) as index:
                self._element(here, place, index, first_lanes(b, b.sub(length, index), self.lanes), states[0], repeated)
            return
        exact = step == 1 or tail.multiple >= self.unroll
        unrolled_end = length if exact else b.sub(length, b.srem(length, i64(step)))

        def vector_loop(nontemporal: bool) -> None:
            with loop(b, i64(0), unrolled_end, step) as index:
                for u, state in enumerate(states):
                    self._element(here, place, b.add(index, i64(u * single)), mask, state, repeated, nontemporal)

        if self.nontemporal:
            written = [(here[k], self.lanes * self._operand(k).dtype.itemsize) for k, _ in self.loop.outputs]
            read = [here[k] for k in self.inputs.values() if k in here and self._operand(k).step == "c"]
            nontemporal_if_possible(b, written, read, vector_loop)
        else:
            vector_loop(False)
        if not exact:
            with loop(b, unrolled_end, length, single) as index:
                self._element(here, place, index, last(index), states[0], repeated)

    def _element(self, here: dict[int, Any], place: Any, index: Any, mask: Any, state: list[Any],
                 repeated: dict[Node, Any], nontemporal: bool = False) -> None:
        """Compute a vector of elements, from `index` of the block on: along a row, or one per row."""
        b, rows, lanes = self.b, self.rows, self.lanes
        linear = b.add(place, index)
        buffer_index = rows.place_of(linear)
        values = self.of_row | repeated
        for node, k in self.inputs.items():
            if node not in values:
                values[node] = self._operand(k).load(b, *self._at(k, here, index), lanes, mask)
        for node, i in self.reads.items():
            values[node] = Operand(node.dtype, "c").load(b, self.buffers[i], None, buffer_index, lanes)
        columns = [to_accumulator(rows.kind.rows.column_op(i), x) for i, x in self.loop.columns]
        lowered = lower(b, [*self.reducer.expressions, *(x for _, x in self.loop.outputs), *columns,
                          *(x for _, x in self.loop.buffered)], values, lanes)
        terms, rest = lowered[:len(self.loop.terms)], lowered[len(self.loop.terms):]
        if terms:
            lifted = self.reducer.lift(b, terms, self._places(linear), lanes)
            if mask is not None and not self.across:
                lifted = self.states.select(mask, lifted)
            self.states.store(state, self.reducer.merge(b, self.states.load(state), lifted))
        for (k, _), value in zip(self.loop.outputs, rest, strict=False):
            if nontemporal:
                self._operand(k).store_nontemporal(b, value, here[k], index, lanes)
            else:
                self._operand(k).store(b, value, *self._at(k, here, index), lanes, mask)
        rest = rest[len(self.loop.outputs):]
        for (i, _), value in zip(self.loop.columns, rest, strict=False):
            self._add_column(i, buffer_index, value, mask)
        for (i, _), value in zip(self.loop.buffered, rest[len(self.loop.columns):], strict=True):
            Operand(rows.kind.schedule.buffers[i].dtype, "c").store(b, value, self.buffers[i], None,
                                                                    buffer_index, lanes)

    def _operand(self, k: int) -> Operand:
        return self.rows.operands[k]

    def _at(self, k: int, here: dict[int, Any], index: Any) -> tuple[Any, Any, Any]:
        """Base, stride and index for accessing the vector of element `index`."""
        if not self.across:
            return here[k], self.rows.inner[k], index
        return at(self.b, here[k], self.b.mul(index, self.rows.inner[k])), self.rows.outer[k], i64(0)

    def _places(self, linear: Any) -> Any:
        if not self.reducer.tracks_index:
            return None
        first = splat(self.b, linear, self.lanes)
        return first if self.across else self.b.add(first, lane_indices(self.lanes, I64))

    def _add_column(self, i: int, index: Any, value: Any, mask: Any) -> None:
        b, sums = self.b, self.rows.kind.sum_into(self.rows.first_column + i)
        if mask is not None:
            value = b.select(mask, value, sums.identity(self.lanes)[0])
        operand = Operand(sums.dtypes[0], "c")
        accumulated = operand.load(b, self.columns[i], None, index, self.lanes)
        if sums.ops[0] in ("max", "min"):  # keeps LLVM from emitting a masked store, which is slow
            accumulated = intrinsic(b, "arithmetic.fence", accumulated.type, [accumulated])
        [merged] = sums.merge(b, [accumulated], [value])
        operand.store(b, merged, self.columns[i], None, index, self.lanes)
