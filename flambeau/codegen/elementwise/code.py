"""Code generation of elementwise kernels: a vectorized loop over runs of elements.

The plan is a list of integers. A one-dimensional kernel reads the extent, the elements per chunk, and the operands'
strides. A kernel with outer dimensions reads the inner extent, the elements per block, the number of blocks, the number
of rows, the rows per chunk, the rank of the outer dimensions, the operands' inner strides, and the outer dimensions'
extents and strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import nontemporal_stores
from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I64,
    POINTER,
    NdIterator,
    Operand,
    at,
    first_lanes,
    i64,
    load_transposed,
    loop,
    nontemporal_if_possible,
    smaller,
    stack_block,
    store_fence,
    word,
)
from ..llvm.lowering import lower, memory_type
from ..llvm.tails import TailInfo
from ..scalar.scalar_ir import BOOL, Node, topological_order


class CodeGenerator:
    """Generates one module.

    Args:
        expressions: one per output.
        dtypes: of the operands, outputs first.
        steps: the operands' access patterns along the inner dimension (`loop_nests.Operand`).
        lanes: elements per vector.
        unroll: vectors per iteration.
        tile_columns: columns of a tile, if an operand is transposed.
        tail: what is known about the lengths of runs.
        nontemporal: whether results are written by non-temporal stores (`runtime.nontemporal_stores`).
    """

    def __init__(self, expressions: Sequence[Node], dtypes: Sequence[np.dtype], steps: str, lanes: int,
                 unroll: int, tile_columns: int, tail: TailInfo, nontemporal: bool = False) -> None:
        self.expressions, self.lanes, self.tile_columns = expressions, lanes, tile_columns
        self.operands = [Operand(dtype, step) for dtype, step in zip(dtypes, steps, strict=True)]
        outputs = self.operands[:len(expressions)]
        self.nontemporal = nontemporal and not tail.single_vector and all(
            each.step == "c" and each.dtype != BOOL for each in outputs)
        if self.nontemporal:  # an iteration writes whole cache lines
            unroll = max(unroll, *(nontemporal_stores.CACHE_LINE // (lanes * each.dtype.itemsize) for each in outputs))
        self.unroll, self.tail = min(unroll, tail.max_unroll), tail
        self.inputs = {len(expressions) + node.const: node for node in topological_order(expressions)
                       if node.op == "input"}

    def module(self, rows: bool) -> str:
        """Return the module, which defines `body(pointers, plan, chunk)`."""
        module = ir.Module("elementwise")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        pointers, plan, chunk = body.args
        bases = [self.b.load(self.b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                 for i in range(len(self.operands))]
        (self._rows if rows else self._flat)(bases, plan, chunk)
        if self.nontemporal:
            store_fence(self.b)
        self.b.ret_void()
        return str(module)

    def _strides(self, plan: Any, first: int) -> list[Any]:
        return [word(self.b, plan, first + i) if each.step in "st"
                else i64(each.dtype.itemsize * {"c": 1, "n": -1, "b": 0}[each.step])
                for i, each in enumerate(self.operands)]

    def _offset(self, bases: Sequence[Any], strides: Sequence[Any], start: Any) -> list[Any]:
        return [at(self.b, base, self.b.mul(start, stride)) for base, stride in zip(bases, strides, strict=True)]

    def _flat(self, bases: Sequence[Any], plan: Any, chunk: Any) -> None:
        b = self.b
        n, block = word(b, plan, 0), word(b, plan, 1)
        strides = self._strides(plan, 2)
        start = b.mul(chunk, block)
        self._run(self.operands, self._offset(bases, strides, start), strides, smaller(b, block, b.sub(n, start)))

    def _rows(self, bases: Sequence[Any], plan: Any, chunk: Any) -> None:
        b, lanes, tile_columns = self.b, self.lanes, self.tile_columns
        n, block, blocks, all_rows, rows_per_chunk, rank = (word(b, plan, i) for i in range(6))
        strides = self._strides(plan, 6)
        start = b.mul(b.srem(chunk, blocks), block)
        row = b.mul(b.sdiv(chunk, blocks), rows_per_chunk)
        last = smaller(b, b.add(row, rows_per_chunk), all_rows)
        count = smaller(b, block, b.sub(n, start))
        extents = at(b, plan, 8 * (6 + len(self.operands)))
        outer = b.gep(extents, [rank], source_etype=I64)
        iterator = NdIterator(b, self._offset(bases, strides, start), rank, extents, outer, row)
        tiles = {i: stack_block(b, each.dtype, lanes * tile_columns) for i, each in enumerate(self.operands)
                   if each.step == "t"}
        operands = [Operand(each.dtype, "c") if each.step == "t" else each for each in self.operands]

        def one_row(q: Any) -> None:
            runs = iterator.pointers(b)
            for i, tile in tiles.items():
                runs[i] = b.gep(tile, [b.mul(q, i64(tile_columns))], source_etype=memory_type(self.operands[i].dtype))
            self._run(operands, runs, strides, count)
            iterator.advance(b)

        if not tiles:
            with loop(b, row, last) as r:
                one_row(r)
            return
        with loop(b, row, last, lanes) as r:
            tile_rows = smaller(b, i64(lanes), b.sub(last, r))
            runs = iterator.pointers(b)
            for i, tile in tiles.items():
                load_transposed(b, self.operands[i].dtype, runs[i], strides[i], tile_rows, count, tile, tile_columns,
                                lanes)
            with loop(b, i64(0), tile_rows) as q:
                one_row(q)

    def _run(self, operands: Sequence[Operand], bases: Sequence[Any], strides: Sequence[Any], count: Any) -> None:
        """Emit an unrolled vector loop over `count` elements and its remainder loop."""
        b, lanes, tail = self.b, self.lanes, self.tail
        if all(each.step == "b" for each in operands):  # one element
            lanes = 0
        broadcast = {node: operands[k].load(b, bases[k], strides[k], None, lanes)
                    for k, node in self.inputs.items() if operands[k].step == "b"}

        def vectors(starts: Sequence[Any], mask: Any, nontemporal: bool = False) -> None:
            loaded = [broadcast | {node: operands[k].load(b, bases[k], strides[k], start, lanes, mask)
                                  for k, node in self.inputs.items() if node not in broadcast} for start in starts]
            results = [lower(b, self.expressions, values, lanes) for values in loaded]
            for start, values in zip(starts, results, strict=True):
                for k, value in enumerate(values):
                    if nontemporal:
                        operands[k].store_nontemporal(b, value, bases[k], start, lanes)
                    elif lanes:
                        operands[k].store(b, value, bases[k], strides[k], start, lanes, mask)
                    else:
                        operands[k].store_one(b, value, bases[k])

        def tail_mask(start: Any) -> Any:
            return None if tail.multiple or not lanes else first_lanes(b, b.sub(count, start), lanes)

        if tail.single_vector or not lanes:
            vectors([i64(0)], tail_mask(i64(0)))
            return
        step = lanes * self.unroll
        exact = tail.multiple >= self.unroll
        unrolled = count if exact else b.sub(count, b.srem(count, i64(step)))

        def main_loop(nontemporal: bool) -> None:
            with loop(b, i64(0), unrolled, step) as index:
                vectors([b.add(index, i64(lanes * u)) for u in range(self.unroll)], None, nontemporal)

        if self.nontemporal:
            outs = len(self.expressions)
            written = [(base, lanes * each.dtype.itemsize) for base, each in zip(bases[:outs], operands, strict=False)]
            read = [base for base, each in zip(bases[outs:], operands[outs:], strict=True) if each.step == "c"]
            nontemporal_if_possible(b, written, read, main_loop)
        else:
            main_loop(False)
        if not exact:
            with loop(b, unrolled, count, lanes) as index:
                vectors([index], tail_mask(index))
