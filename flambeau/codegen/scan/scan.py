"""Scan launches: cumulative operations and linear recurrences along one dimension, forward or reverse.

A scan has *states*: a step computes new states from the old ones and the next elements, and stores them. Steps are
sequential, so vectors are over lines. Where lines are contiguous in memory, blocks of them are transposed when loaded
and stored.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.scan import scan
>>> from flambeau.codegen.scalar.scalar_ir import constant, variable
>>> total, x = variable(0, "float64"), variable(1, "float64")
>>> sums = scan.Scan([total + x], [constant(0.0, "float64")], ["float64"])
>>> out, values = np.zeros(3), np.arange(3.0)
>>> if codegen.available():
...     launch.run(sums.launches([launch.Spec.of(out)], [launch.Spec.of(values)], 0), [out, values])
... else:
...     out = values.cumsum()
>>> print(out)
[0. 1. 3.]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar import scalar_ir
from ..scalar.scalar_ir import Node

#: additions that one thread computes in about 10 µs
GRAIN = 1 << 15
#: minimum (with several chunks) and maximum neighbouring lines that are scanned together
MIN_LINES, MAX_LINES = 128, 512
#: maximum lanes of a vector; transposed blocks have so many lines and twice as many steps
MAX_LANES = 8


class Scan:
    """A scan operation.

    Args:
        steps: expressions of the states after a step. Their variables are the states before it, an element of each
            input, and the step number (int64).
        initial: constants, the states before the first step.
        outputs: the dtypes that states are stored in.
    """

    def __init__(self, steps: Sequence[Node], initial: Sequence[Node],
                 outputs: Sequence[np.dtype | str | type]) -> None:
        self.steps, self.initial = tuple(steps), tuple(initial)
        self.outputs = [np.dtype(each) for each in outputs]
        self.cost = scalar_ir.cost(steps) + len(steps)

    def launches(self, outs: Sequence[Spec], ins: Sequence[Spec], dim: int, reverse: bool = False) -> list[Launch]:
        """The launches of a scan of arrays of one shape; outputs must not alias inputs.

        Args:
            dim: the scanned dimension, non-negative.
            reverse: whether to scan from its end.
        """
        shape = outs[0].shape
        arrays = [*outs, *ins]
        n = shape[dim]
        if not iteration_space.numel(shape):
            return []
        along = [each.strides[dim] if n > 1 else each.dtype.itemsize for each in arrays]
        strides = [[0 if d == dim else stride for d, stride in enumerate(each.strides)] for each in arrays]
        others = tuple([1 if d == dim else extent for d, extent in enumerate(shape)])
        dims = iteration_space.collapse(others, strides, iteration_space.memory_order(others, strides))
        if not dims.extents:
            dims = iteration_space.Dims([1], [[0] for _ in arrays])
        sizes = [each.dtype.itemsize for each in arrays]
        transposed = all(stride in (size, 0) for stride, size in zip(along, sizes, strict=True)) and not any(
            stride == 0 for stride in along[:len(outs)])
        steps = ("".join("c" if stride else "b" for stride in along) if transposed
                 else iteration_space.access_patterns(dims, sizes))
        lanes = min(MAX_LANES, max(2, target.host().vector_bits // 8 // min(sizes)))
        count, lines = dims.extents[0], iteration_space.numel(dims.extents[1:])
        grain = max(1, GRAIN // (n * self.cost))
        if transposed:
            across, block = iteration_space.blocks(count, grain, lanes)
        else:
            across, block = _parts(count, min(MAX_LINES, max(grain // 64 * 64, MIN_LINES)))
        down, chunk_lines = iteration_space.blocks(lines, max(1, grain // block), 1)
        words = [n, count, block, across, lines, chunk_lines, len(dims.extents) - 1,
                 *(each[0] for each in dims.strides),
                 *along, *dims.extents[1:], *(s for each in dims.strides for s in each[1:])]
        library = self._library([each.dtype for each in ins], "transposed" if transposed else "by lines", steps,
                                lanes, reverse, MAX_LINES)
        return [Launch(library, library.symbol("body"), across * down, tuple(words))]

    def _library(self, inputs: Sequence[np.dtype], *variant: Any) -> compilation.Library:
        recipe = " ".join(map(str, ["scan", *variant, *self.outputs, *inputs]))

        def generate() -> str:
            from . import code

            return code.Emitter(self.steps, self.initial, self.outputs, inputs, *variant[1:]).module(variant[0])

        text = scalar_ir.canonical_text([*self.steps, *self.initial])
        return compilation.load(f"{recipe}\n{text}", ("body",), generate, "few")


def _parts(extent: int, limit: int) -> tuple[int, int]:
    """The number and size of equal parts of at most `limit` elements, of entire cache lines."""
    block = -(-extent // -(-extent // limit))
    if block < extent:
        block = -(-block // 64) * 64
    return -(-extent // block), block


__all__ = ["Scan"]
