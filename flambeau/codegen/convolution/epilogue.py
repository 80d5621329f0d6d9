"""Convolution epilogues: expressions applied to the sums before they are stored.

An epilogue has one expression per output: variable 0 is the sum, the others are arrays that broadcast to the outputs.
Channels-last outputs are computed and stored tile by tile. For other layouts the sums go to a channels-last buffer,
which `flush` transposes in square blocks, so that it computes and stores along positions.
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
from ..llvm.lowering import intrinsic, lower, memory_type
from ..scalar.scalar_ir import Node, canonical_text, cost, variable
from .plan import CORRELATION, OPERAND
from .plan_fields import Plan
from .transpose import columns

#: plan, pointers, buffer; first index and count along n, d, h, w and channels
FLUSH = ir.FunctionType(ir.VoidType(), [POINTER] * 3 + [I64] * 10)


class Epilogue(NamedTuple):
    """Expressions over the sums, and their operands: outputs, then the other arrays.

    Attributes:
        outputs: the expressions.
        dtypes: the operands' dtypes.
        steps: the operands' step kinds along the vectorized dimension (`loop_nests.Operand`).
        sums: the dtype of variable 0.
    """

    outputs: tuple[Node, ...]
    dtypes: tuple[np.dtype, ...]
    steps: str
    sums: np.dtype

    @property
    def recipe(self) -> str:
        return f"{self.steps} {' '.join(map(str, self.dtypes))}\n{canonical_text(self.outputs)}"

    def pointer(self, index: int) -> int:
        """The pointer index of operand `index`: source and weights come after the outputs."""
        return index if index < len(self.outputs) else index + 2

    def finish(self, builder: ir.IRBuilder, value: Any, bases: Sequence[Any], strides: Sequence[Any], index: Any,
               lanes: int, mask: Any = None) -> None:
        """Compute and store the elements from `index` on, from a vector of sums."""
        operands = [Operand(dtype, step) for dtype, step in zip(self.dtypes, self.steps, strict=True)]
        count = len(self.outputs)
        inputs = {variable(1 + i, self.dtypes[count + i]): operands[count + i].load(
            builder, bases[count + i], strides[count + i], index, lanes, mask)
            for i in range(len(operands) - count)}
        inputs[variable(0, self.sums)] = value
        for i, result in enumerate(lower(builder, self.outputs, inputs, lanes)):
            operands[i].store(builder, result, bases[i], strides[i], index, lanes, mask)


def library(epilogue: Epilogue, dtype: np.dtype, lanes: int) -> compilation.Library:
    """The compiled `flush` for sums of `dtype` in panels of vectors of `lanes` elements."""
    return compilation.load(f"convolution flush {dtype} {lanes} {epilogue.recipe}", ("flush",),
                         lambda: _generate(epilogue, dtype, lanes), "few")


def operands(builder: ir.IRBuilder, plan: Plan, pointers: Any, epilogue: Epilogue,
             channel: Any) -> tuple[list[list[Any]], list[Any]]:
    """The operands' strides by n, d, h, w and channel, and the addresses of a channel's first elements."""
    strides = [[plan.operand(i, j) for j in range(OPERAND)] for i in range(len(epilogue.dtypes))]
    bases = []
    for i, steps in enumerate(strides):
        base = builder.load(builder.gep(pointers, [i64(epilogue.pointer(i))], source_etype=POINTER), typ=POINTER)
        bases.append(at(builder, base, builder.mul(channel, steps[4])))
    return strides, bases


#: bytes of a cache line
CACHE_LINE = 64
#: epilogues of at most so many operations are unrolled over the channels of a block
MAX_UNROLLED_COST = 3


def _generate(epilogue: Epilogue, dtype: np.dtype, lanes: int) -> str:
    return _Flush(epilogue, dtype, lanes).text


class _Flush:
    """Generates `flush`."""

    def __init__(self, epilogue: Epilogue, dtype: np.dtype, lanes: int) -> None:
        module = ir.Module("flush")
        function, b = kernel_entry.begin(module, "flush", FLUSH)
        words, pointers, buffer, n, images, d, depth, h, height, w, width, channel, channels = function.args
        plan = Plan(b, words, CORRELATION)
        self.builder, self.epilogue, self.dtype, self.lanes, self.size = b, epilogue, dtype, lanes, dtype.itemsize
        self.vector = ir.VectorType(memory_type(dtype), lanes)
        self.square = local(b, self.vector, lanes)
        self.pitch = plan["buffer.w"]
        self.strides = [[plan.operand(i, j) for j in range(OPERAND)] for i in range(len(epilogue.dtypes))]
        starts = []
        for i, strides in enumerate(self.strides):
            base = b.load(b.gep(pointers, [i64(epilogue.pointer(i))], source_etype=POINTER), typ=POINTER)
            starts.append(self._moved(base, strides, (n, d, h, w, channel)))
        # where rows are contiguous in all arrays, they are one run of positions
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
        """A run of positions for at most one vector of channels: square blocks, then the remainder."""
        b, lanes = self.builder, self.lanes
        unrolled = max(len(self.epilogue.dtypes), cost(self.epilogue.outputs)) <= MAX_UNROLLED_COST
        with loop(b, i64(0), columns_, lanes) as q:
            left = b.sub(columns_, q)
            # the buffer is padded by a block behind the last position
            place = at(b, source, b.mul(q, self.pitch))
            vectors = columns(b, self.dtype, [at(b, place, b.mul(self.pitch, i64(i))) for i in range(lanes)])
            full = b.icmp_signed(">=", left, i64(lanes))
            if unrolled:
                full = b.and_(full, b.icmp_signed("==", channels, i64(lanes)))
            with b.if_else(full) as (unmasked, masked):
                with unmasked:
                    if unrolled:
                        for i, vector in enumerate(vectors):
                            self._finish(vector, bases, i64(i), q)
                    else:
                        self._finish_each(vectors, bases, channels, q)
                with masked:
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
        self.epilogue.finish(b, vector, places, [strides[3] for strides in self.strides], position, self.lanes, mask)


def prefetch() -> compilation.Library:
    """The compiled `prefetch`: write prefetches of the cache lines of the first output that are stored next.

    Its arguments are those of `flush`. It does nothing unless positions or channels are contiguous.
    """
    return compilation.load("convolution prefetch", ("prefetch",), _prefetch, "few")


def _prefetch() -> str:
    module = ir.Module("prefetch")
    function, b = kernel_entry.begin(module, "prefetch", FLUSH)
    words, pointers, _, n, images, d, depth, h, height, w, width, channel, channels = function.args
    plan = Plan(b, words, CORRELATION)
    size = plan["target.size"]
    strides = [plan.operand(0, j) for j in range(OPERAND)]
    base = b.load(pointers, typ=POINTER)
    for index, stride in zip((n, d, h, w, channel), strides, strict=True):
        base = at(b, base, b.mul(index, stride))

    def prefetch_lines(start: Any, length: Any) -> None:
        with loop(b, i64(0), length, CACHE_LINE) as line:
            flags = [ir.Constant(I32, flag) for flag in (1, 3, 1)]  # write, highest locality, data cache
            intrinsic(b, "prefetch", ir.VoidType(), [at(b, start, line), *flags], [POINTER])

    rows = b.and_(b.icmp_signed("!=", plan["flat"], i64(0)), b.icmp_signed("==", strides[3], size))
    with b.if_else(rows) as (positions, others):
        with positions:
            length = b.mul(b.mul(height, width), size)
            with loop(b, i64(0), images) as i, loop(b, i64(0), depth) as j, loop(b, i64(0), channels) as c:
                at_n = at(b, base, b.mul(i, strides[0]))
                prefetch_lines(at(b, at(b, at_n, b.mul(j, strides[1])), b.mul(c, strides[4])), length)
        with others, b.if_then(b.icmp_signed("==", strides[4], size)), ExitStack() as nest:
            place = base
            for count, stride in zip((images, depth, height, width), strides, strict=False):
                place = at(b, place, b.mul(nest.enter_context(loop(b, i64(0), count)), stride))
            prefetch_lines(place, b.mul(channels, size))
    b.ret_void()
    return str(module)
