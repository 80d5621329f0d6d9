"""The code of elementwise kernels: expressions computed along runs of elements, vector by vector.

The plan of a call is a list of integers. Along one run: its length and a chunk's, then the operands' strides. Along
the rows of outer dimensions: a row's length, a chunk's, their number, the rows, a chunk's rows, the rank of the
outer dimensions, the operands' inner strides, and the outer dimensions' extents and strides.
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
    Operand,
    Walk,
    at,
    block_of,
    first_lanes,
    i64,
    loop,
    past_if_possible,
    settle,
    smaller,
    turn,
    word,
)
from ..llvm.lowering import lower, stored
from ..llvm.tails import Ending
from ..scalar.scalar_ir import BOOL, Node, ordered


class Writer:
    """Writes one module: for these expressions, and operands, outputs first, that step so along the inner dimension.

    Args:
        narrow: columns of a block where an operand is turned.
        ending: what is known of the runs' lengths.
        past: whether results go past the caches to memory (see `caches`).
    """

    def __init__(self, expressions: Sequence[Node], dtypes: Sequence[np.dtype], steps: str, lanes: int,
                 unroll: int, narrow: int, ending: Ending, past: bool = False) -> None:
        self.expressions, self.lanes, self.narrow = expressions, lanes, narrow
        self.operands = [Operand(dtype, step) for dtype, step in zip(dtypes, steps, strict=True)]
        outputs = self.operands[:len(expressions)]
        self.past = past and not ending.once and all(each.step == "c" and each.dtype != BOOL for each in outputs)
        if self.past:  # whole lines of memory at a time
            unroll = max(unroll, *(nontemporal_stores.CACHE_LINE // (lanes * each.dtype.itemsize) for each in outputs))
        self.unroll, self.ending = min(unroll, ending.most), ending
        self.inputs = {len(expressions) + node.const: node for node in ordered(expressions) if node.op == "input"}

    def module(self, rows: bool) -> str:
        """The module's text: `body`."""
        module = ir.Module("elementwise")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        pointers, plan, chunk = body.args
        bases = [self.b.load(self.b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                 for i in range(len(self.operands))]
        (self._rows if rows else self._line)(bases, plan, chunk)
        if self.past:
            settle(self.b)
        self.b.ret_void()
        return str(module)

    def _strides(self, plan: Any, first: int) -> list[Any]:
        return [word(self.b, plan, first + i) if each.step in "st"
                else i64(each.dtype.itemsize * {"c": 1, "n": -1, "b": 0}[each.step])
                for i, each in enumerate(self.operands)]

    def _from(self, bases: Sequence[Any], strides: Sequence[Any], start: Any) -> list[Any]:
        return [at(self.b, base, self.b.mul(start, stride)) for base, stride in zip(bases, strides, strict=True)]

    def _line(self, bases: Sequence[Any], plan: Any, chunk: Any) -> None:
        b = self.b
        n, block = word(b, plan, 0), word(b, plan, 1)
        strides = self._strides(plan, 2)
        start = b.mul(chunk, block)
        self._run(self.operands, self._from(bases, strides, start), strides, smaller(b, block, b.sub(n, start)))

    def _rows(self, bases: Sequence[Any], plan: Any, chunk: Any) -> None:
        b, lanes, narrow = self.b, self.lanes, self.narrow
        n, block, across, all_rows, tall, rank = (word(b, plan, i) for i in range(6))
        strides = self._strides(plan, 6)
        start = b.mul(b.srem(chunk, across), block)
        row = b.mul(b.sdiv(chunk, across), tall)
        last = smaller(b, b.add(row, tall), all_rows)
        count = smaller(b, block, b.sub(n, start))
        extents = at(b, plan, 8 * (6 + len(self.operands)))
        outer = b.gep(extents, [rank], source_etype=I64)
        walk = Walk(b, self._from(bases, strides, start), rank, extents, outer, row)
        squares = {i: block_of(b, each.dtype, lanes * narrow) for i, each in enumerate(self.operands)
                   if each.step == "t"}
        plain = [Operand(each.dtype, "c") if each.step == "t" else each for each in self.operands]

        def one_row(q: Any) -> None:
            runs = walk.pointers(b)
            for i, square in squares.items():
                runs[i] = b.gep(square, [b.mul(q, i64(narrow))], source_etype=stored(self.operands[i].dtype))
            self._run(plain, runs, strides, count)
            walk.advance(b)

        if not squares:
            with loop(b, row, last) as r:
                one_row(r)
            return
        with loop(b, row, last, lanes) as r:
            tall_here = smaller(b, i64(lanes), b.sub(last, r))
            runs = walk.pointers(b)
            for i, square in squares.items():
                turn(b, self.operands[i].dtype, runs[i], strides[i], tall_here, count, square, narrow, lanes)
            with loop(b, i64(0), tall_here) as q:
                one_row(q)

    def _run(self, operands: Sequence[Operand], bases: Sequence[Any], strides: Sequence[Any], count: Any) -> None:
        """Compute `count` elements that follow each other: whole vectors, several at a time, then what is left."""
        b, lanes, ending = self.b, self.lanes, self.ending
        if all(each.step == "b" for each in operands):  # one element
            lanes = 0
        repeated = {node: operands[k].load(b, bases[k], strides[k], None, lanes)
                    for k, node in self.inputs.items() if operands[k].step == "b"}

        def vectors(starts: Sequence[Any], mask: Any, past: bool = False) -> None:
            loaded = [repeated | {node: operands[k].load(b, bases[k], strides[k], start, lanes, mask)
                                  for k, node in self.inputs.items() if node not in repeated} for start in starts]
            results = [lower(b, self.expressions, values, lanes) for values in loaded]
            for start, found in zip(starts, results, strict=True):
                for k, value in enumerate(found):
                    if past:
                        operands[k].store_nontemporal(b, value, bases[k], start, lanes)
                    elif lanes:
                        operands[k].store(b, value, bases[k], strides[k], start, lanes, mask)
                    else:
                        operands[k].store_one(b, value, bases[k])

        def last(start: Any) -> Any:
            """What is hidden of a single vector."""
            return None if ending.multiple or not lanes else first_lanes(b, b.sub(count, start), lanes)

        if ending.once or not lanes:
            vectors([i64(0)], last(i64(0)))
            return
        step = lanes * self.unroll
        exact = ending.multiple >= self.unroll
        whole = count if exact else b.sub(count, b.srem(count, i64(step)))
        def steadily(past: bool) -> None:
            with loop(b, i64(0), whole, step) as index:
                vectors([b.add(index, i64(lanes * u)) for u in range(self.unroll)], None, past)

        if self.past:
            outs = len(self.expressions)
            written = [(base, lanes * each.dtype.itemsize) for base, each in zip(bases[:outs], operands, strict=False)]
            read = [base for base, each in zip(bases[outs:], operands[outs:], strict=True) if each.step == "c"]
            past_if_possible(b, written, read, steadily)
        else:
            steadily(False)
        if not exact:
            with loop(b, whole, count, lanes) as index:
                vectors([index], last(index))
