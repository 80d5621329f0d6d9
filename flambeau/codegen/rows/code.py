"""Row kernels: code generation for chunks of entire rows or pieces of all rows, and for merging their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import target
from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I8,
    I64,
    POINTER,
    Operand,
    as_opaque_pointer,
    at,
    first_lanes,
    i64,
    load_transposed,
    loop,
    smaller,
    store_fence,
    store_transposed,
)
from ..llvm.lowering import memory_type
from ..llvm.pairwise_reduction import ReductionState, tree_pairs
from ..llvm.reducers import Reducer
from ..scalar.reduction_ops import to_accumulator
from ..scalar.scalar_ir import Node
from .function import Function, Kind
from .row_pass import RowPass


def names(kind: Kind) -> tuple[str, ...]:
    """The module's functions: `body` for entire rows, or one `pass` per loop; and those that run after all chunks."""
    if kind.nest.entire_rows:
        return ("body", "finish") if kind.operands.columns or kind.totals.dtypes else ("body",)
    return tuple(f"pass{k}" for k in kind.passes) + tuple(f"then{k}" for k in kind.passes if _needs_merge(kind, k))


def _needs_merge(kind: Kind, k: int) -> bool:
    """Whether loop k has results to merge after all pieces."""
    return bool(kind.reducers[k].dtypes) or (k == kind.passes[-1] and bool(kind.per_row or kind.totals.dtypes))


def module(kind: Kind) -> str:
    """The module's text."""
    compiled = ir.Module("rows")
    for name in names(kind):
        function = _Rows(compiled, name, kind)
        if name == "body":
            function.body()
        elif name == "finish":
            function.finish()
        elif name.startswith("pass"):
            function.piece_of(int(name[4:]))
        else:
            function.merge_pieces(int(name[4:]))
    return str(compiled)


def _transpose_function(module: ir.Module, itemsize: int, lanes: int, inverse: bool) -> ir.Function:
    """The module's function that transposes a block: its address, row stride, elements, rows, and the square block."""
    name = f"transpose{itemsize}{'inverse' * inverse}"
    function = module.globals.get(name)
    if function is None:
        function, b = kernel_entry.begin(module, name, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64,
                                                                                       POINTER]))
        function.linkage = "internal"
        function.attributes.add("noinline")
        here, distance, elements, rows, square = function.args
        dtype = np.dtype(f"u{itemsize}")
        if inverse:
            store_transposed(b, dtype, square, here, distance, elements, rows, lanes)
        else:
            load_transposed(b, dtype, here, distance, elements, rows, square, lanes, lanes)
        b.ret_void()
    return function


class _Rows(Function):
    """A function over rows, or over the chunks' partial results."""

    def body(self) -> None:
        """`body`: all loops over the rows of a chunk."""
        b, kind = self.b, self.kind
        first = b.mul(self.chunk, self.chunk_rows)
        last = smaller(b, b.add(first, self.chunk_rows), self.rows)
        buffers = [self._buffer(node.dtype) for node in kind.schedule.buffers]
        squares = {k: self._buffer(kind.dtypes[k]) for k in self.transposed}
        sums = self.columns(self.chunk)
        for k in kind.passes:
            self._clear(k, sums, i64(0), self.n)
        totals = ReductionState(b, kind.totals, self.lanes if self.across else 0)
        accumulated = totals.allocate_identity()
        walk = self.walk(first)
        with loop(b, first, last) as row:
            places = dict(zip(self.walked, walk.pointers(b), strict=True))
            pointers = places | squares
            self._transpose_block(row, places, squares, inverse=False)

            def one(mask: Any) -> None:
                known = self.of_row(pointers, mask)
                for k in kind.passes:
                    state = RowPass(self, k, buffers, sums)(pointers, known, i64(0), self.n, mask)
                    known |= zip(kind.schedule.loops[k].results, self._finished(k, state), strict=True)
                contributions = self._results(pointers, known, mask)
                totals.store(accumulated, kind.totals.merge(b, totals.load(accumulated), contributions))

            self._block(row, one)
            self._transpose_block(row, places, squares, inverse=True)
            walk.advance(b)
        if kind.totals.dtypes:
            state = totals.load(accumulated)
            for i, value in enumerate(totals.horizontal(state) if self.across else state):
                memory, dtype = self.region("total", i)
                b.store(value, b.gep(memory, [self.chunk], source_etype=memory_type(dtype)))
        self._settle(kind.passes)
        b.ret_void()

    def _settle(self, loops: Sequence[int]) -> None:
        """Fence the non-temporal stores of these loops before the chunk ends."""
        if any(map(self.kind.stores_nontemporal, loops)):
            store_fence(self.b)

    def _block(self, row: Any, one: Any) -> None:
        """Compute a row or block; where masks are slow, only an incomplete block is masked."""
        mask = self.mask(row)
        if mask is None or target.host().vector_bits >= 256:
            one(mask)
            return
        full = self.b.extract_element(mask, ir.Constant(ir.IntType(32), self.lanes - 1))
        with self.b.if_else(full) as (unmasked, masked):
            with unmasked:
                one(None)
            with masked:
                one(mask)

    def _transpose_block(self, row: Any, places: dict[int, Any], squares: dict[int, Any], inverse: bool) -> None:
        """Transpose contiguous rows into square blocks; or, with `inverse`, the blocks of outputs into rows."""
        b, lanes = self.b, self.lanes
        chosen = [k for k in self.transposed if (k < self.first_input) == inverse]
        if not chosen:
            return
        rows = self.place(row)[1]
        with loop(b, i64(0), self.n, lanes) as j:
            for k in chosen:
                dtype = self.kind.dtypes[k]
                here = at(b, places[k], b.mul(j, i64(dtype.itemsize)))
                square = at(b, squares[k], b.mul(j, self.inner[k]))
                b.call(_transpose_function(b.module, dtype.itemsize, lanes, inverse),
                       [here, self.distances[k], b.sub(self.n, j), rows, square])

    def _buffer(self, dtype: np.dtype) -> Any:
        """Stack memory for one value per element of a row, or of a block's rows."""
        b = self.b
        count = b.add(self.n, i64(self.lanes))
        size = b.mul(count, i64(dtype.itemsize * (self.lanes if self.across else 1)))
        memory = b.alloca(I8, size=size)
        memory.align = 64
        return as_opaque_pointer(b, memory)

    def columns(self, chunk: Any | None) -> dict[int, Any]:
        """Addresses of a chunk's column sums; without a chunk, of the ones that all pieces share."""
        addresses = {}
        for i in range(self.kind.operands.columns):
            memory, dtype = self.region("column", i)
            skipped = i64(0) if chunk is None else self.b.mul(self.b.mul(chunk, self.width), i64(dtype.itemsize))
            addresses[i] = at(self.b, memory, skipped)
        return addresses

    def _clear(self, k: int, memory: dict[int, Any], start: Any, stop: Any) -> None:
        """Initialize loop k's column sums of the elements from `start` to `stop`."""
        b, lanes = self.b, self.lanes
        for i, _ in self.kind.schedule.loops[k].columns:
            sums = self.kind.sum_into(self.first_column + i)
            with loop(b, start, stop, 1 if self.across else lanes) as j:
                Operand(sums.dtypes[0], "c").store(b, sums.identity(lanes)[0], memory[i], None, self.place_of(j), lanes)

    def _finished(self, k: int, state: Sequence[Any], lanes: int | None = None) -> list[Any]:
        """The results of loop k's reductions."""
        if not state:
            return []
        lanes = (self.lanes if self.across else 0) if lanes is None else lanes
        results = self.kind.reducers[k].finish(self.b, state, self.n, lanes)
        empty = self.b.icmp_signed("==", self.n, i64(0))
        return [self.or_zero(value, empty) if op == "sum" else value
                for (op, _), value in zip(self.kind.schedule.loops[k].terms, results, strict=True)]

    def _results(self, pointers: dict[int, Any], known: dict[Node, Any], mask: Any) -> list[Any]:
        """Store the per-row results; return the row's or block's contributions to the totals."""
        kind = self.kind
        values = self.row_values([*kind.per_row, *(to_accumulator("sum", x) for x in kind.schedule.row_totals)], known)
        for i, value in enumerate(values[:len(kind.per_row)]):
            self.row_store(kind.operands.elementwise + i, value, pointers, mask)
        contributions = values[len(kind.per_row):]
        return contributions if mask is None else [self.b.select(mask, value, identity) for value, identity in
                                           zip(contributions, kind.totals.identity(self.lanes), strict=True)]

    # pieces of all rows

    def piece_of(self, k: int) -> None:
        """`pass<k>`: loop k over a piece of every row; stores the partial states in scratch memory."""
        b, kind = self.b, self.kind
        start = b.mul(self.chunk, self.piece)
        stop = smaller(b, b.add(start, self.piece), self.n)
        sums = self.columns(None)
        self._clear(k, sums, start, stop)
        walk = self.walk(i64(0))
        with loop(b, i64(0), self.rows) as row:
            pointers = dict(zip(self.walked, walk.pointers(b), strict=True))
            position = self.place(row)[0]

            def one(mask: Any) -> None:
                known = self.of_row(pointers, mask) | self._earlier(k, position)
                state = RowPass(self, k, [], sums)(pointers, known, start, stop, mask)
                index = b.add(b.mul(self.chunk, self.pitch), position)
                for (memory, dtype), value in zip(self._states(k), state, strict=True):
                    address = b.gep(memory, [index], source_etype=memory_type(dtype))
                    if self.across:
                        Operand(dtype, "c").store(b, value, memory, None, index, self.lanes, mask)
                    else:
                        b.store(value, address, align=1)

            self._block(row, one)
            walk.advance(b)
        self._write_columns({i: sums[i] for i, _ in kind.schedule.loops[k].columns}, start, stop)
        self._settle([k])
        b.ret_void()

    def _states(self, k: int) -> list[Any]:
        first = sum(len(each.dtypes) for each in self.kind.reducers[:k])
        return [self.region("state", first + i) for i in range(len(self.kind.reducers[k].dtypes))]

    def _earlier(self, k: int, position: Any) -> dict[Node, Any]:
        """The results of the loops before k, for a row or a block's rows."""
        results = {}
        nodes = [node for each in self.kind.schedule.loops[:k] for node in each.results]
        for i, node in enumerate(nodes):
            memory, dtype = self.region("result", i)
            address = self.b.gep(memory, [position], source_etype=memory_type(dtype))
            results[node] = Operand(dtype, "c" if self.across else "b").load(
                self.b, address, None, i64(0), self.lanes if self.across else 0)
        return results

    def merge_pieces(self, k: int) -> None:
        """`then<k>`: merge the pieces' states of loop k; after the last loop, store per-row results and totals."""
        b, lanes, kind = self.b, self.lanes, self.kind
        if kind.reducers[k].dtypes:
            memory = self._states(k)

            def load(index: Any) -> list[Any]:
                return [Operand(dtype, "c").load(b, each, None, index, lanes) for each, dtype in memory]

            with tree_pairs(b, self.parts) as (p, q), loop(b, i64(0), self.pitch, lanes) as j:
                here, there = (b.add(b.mul(each, self.pitch), j) for each in (p, q))
                merged = kind.reducers[k].merge(b, load(here), load(there))
                for (each, dtype), value in zip(memory, merged, strict=True):
                    Operand(dtype, "c").store(b, value, each, None, here, lanes)
            first = sum(len(each.results) for each in kind.schedule.loops[:k])
            with loop(b, i64(0), self.pitch, lanes) as j:
                for i, value in enumerate(self._finished(k, load(j), lanes)):
                    each, dtype = self.region("result", first + i)
                    Operand(dtype, "c").store(b, value, each, None, j, lanes)
        if k == kind.passes[-1] and (kind.per_row or kind.totals.dtypes):
            self._rows_results()
        b.ret_void()

    def _rows_results(self) -> None:
        b, kind = self.b, self.kind
        walk = self.walk(i64(0))
        with loop(b, i64(0), self.rows) as row:
            pointers = dict(zip(self.walked, walk.pointers(b), strict=True))
            position, mask = self.place(row)[0], self.mask(row)
            known = self.of_row(pointers, mask) | self._earlier(len(kind.schedule.loops), position)
            for i, value in enumerate(self._results(pointers, known, mask)):
                memory, dtype = self.region("total", i)
                address = b.gep(memory, [position], source_etype=memory_type(dtype))
                if self.across:
                    Operand(dtype, "c").store(b, value, address, None, i64(0), self.lanes, mask)
                else:
                    b.store(value, address, align=1)
            walk.advance(b)
        blocks = b.sdiv(b.add(self.side, i64(self.lanes - 1)), i64(self.lanes))
        self._write_totals(b.mul(b.sdiv(self.rows, blocks), self.side) if self.across else self.rows)

    # sums over the rows

    def finish(self) -> None:
        """`finish`: merge the chunks' column sums for a part of the columns; the first chunk also merges the totals."""
        b, lanes = self.b, self.lanes
        start = b.mul(self.chunk, self.chunk_columns)
        stop = smaller(b, b.add(start, self.chunk_columns), self.n)
        sums = self.columns(i64(0))
        for i, memory in sums.items():
            reducer = self.kind.sum_into(self.first_column + i)
            operand = Operand(reducer.dtypes[0], "c")
            with tree_pairs(b, self.parts) as (p, q), loop(b, self.place_of(start), self.place_of(stop), lanes) as j:
                here, there = (b.add(b.mul(each, self.width), j) for each in (p, q))
                [value] = reducer.merge(b, *([operand.load(b, memory, None, each, lanes)] for each in (here, there)))
                operand.store(b, value, memory, None, here, lanes)
        self._write_columns(sums, start, stop)
        with b.if_then(b.icmp_signed("==", self.chunk, i64(0))):
            self._write_totals(self.parts)
        b.ret_void()

    def _write_columns(self, sums: dict[int, Any], start: Any, stop: Any) -> None:
        """Store the column sums from `start` to `stop`, accumulated at these addresses."""
        b, lanes = self.b, self.lanes
        empty = b.icmp_signed("==", self.rows, i64(0))

        def summed(value: Any, reducer: Reducer) -> Any:
            return self.or_zero(value, empty) if reducer.ops == ["sum"] else value

        for i, memory in sums.items():
            k = self.first_column + i
            reducer = self.kind.sum_into(k)
            operand = Operand(reducer.dtypes[0], "c")

            def one(here: dict[int, Any], place: Any, length: Any, k: int = k, memory: Any = memory,
                    operand: Operand = operand, reducer: Any = reducer) -> None:
                if self.across:
                    with loop(b, i64(0), length) as j:
                        value = operand.load(b, memory, None, self.place_of(b.add(place, j)), lanes)
                        [value] = ReductionState(b, reducer, lanes).horizontal([value])
                        [value] = reducer.finish(b, [summed(value, reducer)], self.rows, 0)
                        self.scalar_store(k, value, at(b, here[k], b.mul(j, self.inner[k])))
                    return
                with loop(b, i64(0), length, lanes) as j:
                    value = operand.load(b, memory, None, b.add(place, j), lanes)
                    [value] = reducer.finish(b, [summed(value, reducer)], self.rows, lanes)
                    self.operands[k].store(b, value, here[k], self.inner[k], j, lanes,
                                           first_lanes(b, b.sub(length, j), lanes))

            self.runs({k: self.bases[k]}, start, stop, None, one)

    def _write_totals(self, parts: Any) -> None:
        """Merge the partial totals and store them."""
        b = self.b
        empty = b.icmp_signed("==", self.rows, i64(0))
        for i in range(self.kind.operands.totals):
            k = self.first_column + self.kind.operands.columns + i
            reducer = self.kind.sum_into(k)
            memory, dtype = self.region("total", i)
            single = ReductionState(b, reducer, 0)
            with tree_pairs(b, parts) as each:
                here, there = ([b.gep(memory, [index], source_etype=memory_type(dtype))] for index in each)
                single.store(here, reducer.merge(b, single.load(here), single.load(there)))
            [value] = reducer.finish(b, [self.or_zero(single.load([memory])[0], empty)], self.rows, 0)
            self.scalar_store(k, value, self.bases[k])
