"""Scans: every element combined with all before it along one dimension, or with all behind it.

A scan keeps *states*; a step makes new ones of the old and of the next elements, and writes them. Steps follow each
other, so what is quick is many lines side by side: as the lanes of vectors. Where each line lies together in memory,
blocks of some lines are turned on their way in and out.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.scan import scan as scanning
>>> from flambeau.codegen.scalar.scalar_ir import constant, variable
>>> total, x = variable(0, "float64"), variable(1, "float64")
>>> sums = scanning.Scan([total + x], [constant(0.0, "float64")], ["float64"])
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

#: additions that one thread does in some ten microseconds
GRAIN = 1 << 15
#: lines that are scanned side by side where they are each other's neighbours: at least, where there are several chunks,
#: and at most
NARROW, WIDE = 128, 512
#: lanes of a vector, at most: blocks of so many lines and twice as many steps are turned
LANES = 8


class Scan:
    """A kind of scan.

    Args:
        steps: the states after a step, over variables: the states before it, then an element of each input, and last
            the number of the step, of int64.
        initial: constants, the states before the first step.
        outputs: the dtypes that states are rounded to where they are written.
    """

    def __init__(self, steps: Sequence[Node], initial: Sequence[Node],
                 outputs: Sequence[np.dtype | str | type]) -> None:
        self.steps, self.initial = tuple(steps), tuple(initial)
        self.outputs = [np.dtype(each) for each in outputs]
        self.cost = scalar_ir.cost(steps) + len(steps)

    def launches(self, outs: Sequence[Spec], ins: Sequence[Spec], dim: int, back: bool = False) -> list[Launch]:
        """The work of one scan of arrays of one shape; outputs share no memory with inputs.

        Args:
            dim: the dimension, from 0 on, that the steps go along.
            back: whether they go from its end.
        """
        shape = outs[0].shape
        every = [*outs, *ins]
        n = shape[dim]
        if not iteration_space.elements(shape):
            return []
        along = [each.strides[dim] if n > 1 else each.dtype.itemsize for each in every]
        strides = [[0 if d == dim else stride for d, stride in enumerate(each.strides)] for each in every]
        others = tuple([1 if d == dim else extent for d, extent in enumerate(shape)])
        dims = iteration_space.collapse(others, strides, iteration_space.memory_order(others, strides))
        if not dims.extents:
            dims = iteration_space.Dims([1], [[0] for _ in every])
        sizes = [each.dtype.itemsize for each in every]
        turned = all(stride in (size, 0) for stride, size in zip(along, sizes, strict=True)) and not any(
            stride == 0 for stride in along[:len(outs)])
        steps = "".join("c" if stride else "b" for stride in along) if turned else iteration_space.steps(dims, sizes)
        lanes = min(LANES, max(2, target.host().vector_bits // 8 // min(sizes)))
        count, lines = dims.extents[0], iteration_space.elements(dims.extents[1:])
        wanted = max(1, GRAIN // (n * self.cost))
        if turned:
            across, block = iteration_space.blocks(count, wanted, lanes)
        else:
            across, block = _parts(count, min(WIDE, max(wanted // 64 * 64, NARROW)))
        down, tall = iteration_space.blocks(lines, max(1, wanted // block), 1)
        words = [n, count, block, across, lines, tall, len(dims.extents) - 1, *(each[0] for each in dims.strides),
                 *along, *dims.extents[1:], *(s for each in dims.strides for s in each[1:])]
        library = self._library([each.dtype for each in ins], "turned" if turned else "beside", steps, lanes, back,
                                WIDE)
        return [Launch(library, library.symbol("body"), across * down, tuple(words))]

    def _library(self, inputs: Sequence[np.dtype], *how: Any) -> compilation.Library:
        recipe = " ".join(map(str, ["scan", *how, *self.outputs, *inputs]))

        def generate() -> str:
            from . import code as scanning_code

            return scanning_code.Writer(self.steps, self.initial, self.outputs, inputs, *how[1:]).module(how[0])

        text = scalar_ir.text([*self.steps, *self.initial])
        return compilation.load(f"{recipe}\n{text}", ("body",), generate, "few")


def _parts(extent: int, most: int) -> tuple[int, int]:
    """A number of parts of at most so many elements, and how many each has: equal ones, of whole lines of a cache."""
    block = -(-extent // -(-extent // most))
    if block < extent:
        block = -(-block // 64) * 64
    return -(-extent // block), block


__all__ = ["Scan"]
