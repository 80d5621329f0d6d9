"""What becomes of a convolution's sums: the expressions over them, and where their values go.

An *ending* is a list of expressions, one for each output: variable 0 is the sum, the others are arrays that broadcast
to the outputs. Where outputs have their channels last, sums are finished tile by tile. Else they are put into a
buffer, channels last, whose square blocks `flush` turns, so that it computes and writes along positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...runtime import compilation
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, Operand, at, first_lanes, i64, local, loop, smaller
from ..llvm.lowering import intrinsic, lower, stored
from ..scalar.scalar_ir import Node, cost, text, variable
from .plan import CORRELATION, OPERAND
from .plan_fields import Plan
from .transpose import columns

#: plan, pointers, the buffer, n, how many, d, how many, h, how many, w, how many, the first channel, how many
FLUSH = ir.FunctionType(ir.VoidType(), [POINTER] * 3 + [I64] * 10)


class Ending(NamedTuple):
    """Expressions over the sums, and the operands: outputs, then the other arrays.

    Attributes:
        outputs: the expressions.
        dtypes: the operands'.
        steps: how they step along the dimension that vectors lie over, as `loops.Operand` names it.
        sums: the dtype of variable 0.
    """

    outputs: tuple[Node, ...]
    dtypes: tuple[np.dtype, ...]
    steps: str
    sums: np.dtype

    @property
    def recipe(self) -> str:
        return f"{self.steps} {' '.join(map(str, self.dtypes))}\n{text(self.outputs)}"

    def pointer(self, index: int) -> int:
        """Which pointer is operand number `index`: after the outputs come the source and the weights."""
        return index if index < len(self.outputs) else index + 2

    def finish(self, builder: ir.IRBuilder, value: Any, bases: Sequence[Any], strides: Sequence[Any], index: Any,
               lanes: int, mask: Any = None) -> None:
        """Compute from a vector of sums, and store, elements `index` and following of the operands' runs."""
        operands = [Operand(dtype, step) for dtype, step in zip(self.dtypes, self.steps, strict=True)]
        count = len(self.outputs)
        inputs = {variable(1 + i, self.dtypes[count + i]): operands[count + i].load(
            builder, bases[count + i], strides[count + i], index, lanes, mask)
            for i in range(len(operands) - count)}
        inputs[variable(0, self.sums)] = value
        for i, result in enumerate(lower(builder, self.outputs, inputs, lanes)):
            operands[i].store(builder, result, bases[i], strides[i], index, lanes, mask)


def library(ending: Ending, dtype: np.dtype, lanes: int) -> compilation.Library:
    """The compiled `flush` of sums of `dtype`, for panels of vectors of so many lanes."""
    return compilation.load(f"convolution flush {dtype} {lanes} {ending.recipe}", ("flush",),
                         lambda: _generate(ending, dtype, lanes), "few")


def operands(builder: ir.IRBuilder, plan: Plan, pointers: Any, ending: Ending,
             channel: Any) -> tuple[list[list[Any]], list[Any]]:
    """An ending's operands: their strides by n, d, h, w and channel, and where a channel's first elements lie."""
    strides = [[plan.operand(i, j) for j in range(OPERAND)] for i in range(len(ending.dtypes))]
    bases = []
    for i, steps in enumerate(strides):
        base = builder.load(builder.gep(pointers, [i64(ending.pointer(i))], source_etype=POINTER), typ=POINTER)
        bases.append(at(builder, base, builder.mul(channel, steps[4])))
    return strides, bases


#: bytes of a line of memory, or less
LINE = 64
#: endings of at most so many operations are written out for every channel of a block
CHEAP = 3


def _generate(ending: Ending, dtype: np.dtype, lanes: int) -> str:
    return _Flush(ending, dtype, lanes).text


class _Flush:
    """Writes `flush`."""

    def __init__(self, ending: Ending, dtype: np.dtype, lanes: int) -> None:
        module = ir.Module("flush")
        function, b = kernel_entry.begin(module, "flush", FLUSH)
        words, pointers, buffer, n, images, d, depth, h, height, w, width, channel, channels = function.args
        plan = Plan(b, words, CORRELATION)
        self.builder, self.ending, self.dtype, self.lanes, self.size = b, ending, dtype, lanes, dtype.itemsize
        self.vector = ir.VectorType(stored(dtype), lanes)
        self.square = local(b, self.vector, lanes)
        self.pitch = plan["buffer.w"]
        self.strides = [[plan.operand(i, j) for j in range(OPERAND)] for i in range(len(ending.dtypes))]
        starts = []
        for i, strides in enumerate(self.strides):
            base = b.load(b.gep(pointers, [i64(ending.pointer(i))], source_etype=POINTER), typ=POINTER)
            starts.append(self._moved(base, strides, (n, d, h, w, channel)))
        # rows that follow each other everywhere are one run of positions
        flat = b.icmp_signed("!=", plan["flat"], i64(0))
        rows = b.select(flat, i64(1), height)
        columns_ = b.select(flat, b.mul(height, width), width)
        pitches = [plan[f"buffer.{axis}"] for axis in "ndh"]
        with loop(b, i64(0), images) as i, loop(b, i64(0), depth) as j, loop(b, i64(0), rows) as k:
            source = self._moved(buffer, pitches, (i, j, k))
            bases = [self._moved(start, strides, (i, j, k))
                     for start, strides in zip(starts, self.strides, strict=True)]
            with loop(b, i64(0), channels, lanes) as first:
                self._run(at(b, source, b.mul(first, i64(self.size))),
                          [at(b, base, b.mul(first, strides[4]))
                           for base, strides in zip(bases, self.strides, strict=True)],
                          columns_, smaller(b, b.sub(channels, first), i64(lanes)))
        b.ret_void()
        self.text = str(module)

    def _moved(self, base: Any, strides: Sequence[Any], indices: Sequence[Any]) -> Any:
        for index, stride in zip(indices, strides, strict=False):
            base = at(self.builder, base, self.builder.mul(index, stride))
        return base

    def _run(self, source: Any, bases: Sequence[Any], columns_: Any, channels: Any) -> None:
        """A run of positions, of a vector's channels or fewer: square blocks, and what is left."""
        b, lanes = self.builder, self.lanes
        cheap = len(self.ending.dtypes) <= CHEAP and cost(self.ending.outputs) <= CHEAP
        with loop(b, i64(0), columns_, lanes) as q:
            left = b.sub(columns_, q)
            # behind the last position the buffer goes on for some more
            place = at(b, source, b.mul(q, self.pitch))
            vectors = columns(b, self.dtype, [at(b, place, b.mul(self.pitch, i64(i))) for i in range(lanes)])
            full = b.icmp_signed(">=", left, i64(lanes))
            if cheap:
                full = b.and_(full, b.icmp_signed("==", channels, i64(lanes)))
            with b.if_else(full) as (quick, careful):
                with quick:
                    if cheap:
                        for i, vector in enumerate(vectors):
                            self._finish(vector, bases, i64(i), q)
                    else:
                        self._finish_each(vectors, bases, channels, q)
                with careful:
                    self._finish_each(vectors, bases, channels, q, first_lanes(b, left, lanes))

    def _finish_each(self, vectors: Sequence[Any], bases: Sequence[Any], channels: Any, position: Any,
                     mask: Any = None) -> None:
        b = self.builder
        for i, vector in enumerate(vectors):
            b.store(vector, b.gep(self.square, [i64(i)], source_etype=self.vector))
        with loop(b, i64(0), channels) as c:
            self._finish(b.load(b.gep(self.square, [c], source_etype=self.vector), typ=self.vector), bases, c,
                         position, mask)

    def _finish(self, vector: Any, bases: Sequence[Any], channel: Any, position: Any, mask: Any = None) -> None:
        b = self.builder
        places = [at(b, base, b.mul(channel, strides[4]))
                  for base, strides in zip(bases, self.strides, strict=True)]
        self.ending.finish(b, vector, places, [strides[3] for strides in self.strides], position, self.lanes, mask)


def ahead() -> compilation.Library:
    """The compiled `ahead`: asks for the lines of memory that are about to be written, so that nobody waits for them.

    It takes what `flush` takes, and sees to the first output where its positions, or its channels, lie together.
    """
    return compilation.load("convolution ahead", ("ahead",), _ahead, "few")


def _ahead() -> str:
    module = ir.Module("ahead")
    function, b = kernel_entry.begin(module, "ahead", FLUSH)
    words, pointers, _, n, images, d, depth, h, height, w, width, channel, channels = function.args
    plan = Plan(b, words, CORRELATION)
    size = plan["target.size"]
    strides = [plan.operand(0, j) for j in range(OPERAND)]
    base = b.load(pointers, typ=POINTER)
    for index, stride in zip((n, d, h, w, channel), strides, strict=True):
        base = at(b, base, b.mul(index, stride))

    def lines(start: Any, length: Any) -> None:
        with loop(b, i64(0), length, LINE) as line:
            how = [ir.Constant(I32, word) for word in (1, 3, 1)]  # to write, to be kept near, data
            intrinsic(b, "prefetch", ir.VoidType(), [at(b, start, line), *how], [POINTER])

    rows = b.and_(b.icmp_signed("!=", plan["flat"], i64(0)), b.icmp_signed("==", strides[3], size))
    with b.if_else(rows) as (positions, others):
        with positions:
            length = b.mul(b.mul(height, width), size)
            with loop(b, i64(0), images) as i, loop(b, i64(0), depth) as j, loop(b, i64(0), channels) as c:
                at_n = at(b, base, b.mul(i, strides[0]))
                lines(at(b, at(b, at_n, b.mul(j, strides[1])), b.mul(c, strides[4])), length)
        with others, b.if_then(b.icmp_signed("==", strides[4], size)), ExitStack() as nest:
            place = base
            for count, stride in zip((images, depth, height, width), strides, strict=False):
                place = at(b, place, b.mul(nest.enter_context(loop(b, i64(0), count)), stride))
            lines(place, b.mul(channels, size))
    b.ret_void()
    return str(module)
