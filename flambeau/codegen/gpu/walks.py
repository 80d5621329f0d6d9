"""Walks: kernels with a thread for each element of a shape, and the offsets of that element in operands."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...runtime.launch import Spec
from .. import iteration_space
from ..scalar.scalar_ir import Node, cast, constant
from .coordinates import INT32, INT64, coordinates, count_blocks, index_dtype, offset
from .kernel_ir import KernelBuilder

#: threads of a block
THREADS = 256


class Walk:
    """A thread for each element of a shape.

    Args:
        b: the kernel's builder, of `THREADS` threads.
        shape: of the elements.
        strides: of each operand, in elements, over the shape.
        reach: the largest index that the kernel computes otherwise.

    Attributes:
        dtype: of indices.
        linear, inside: the element's number, and whether there is such an element.
        at: its offset in each operand.
        blocks: the number of blocks.
    """

    def __init__(self, b: KernelBuilder, shape: Sequence[int], strides: Sequence[Sequence[int]],
                 reach: int = 0) -> None:
        total = prod(shape)
        dims = iteration_space.collapse(shape, strides, range(len(shape)))
        self.dtype = index_dtype(dims.extents, dims.strides, max(total, reach, 1))
        block, thread = (each if self.dtype == INT32 else cast(each, INT64) for each in (b.block, b.thread))
        self.linear = block * THREADS + thread
        self.inside = self.linear < total
        self.zero = constant(0, self.dtype)
        places = coordinates(self.linear, dims.extents)
        self.at = [offset(places, each, self.zero) for each in dims.strides]
        self.blocks = count_blocks(total, THREADS)

    def number(self, value: int) -> Node:
        """An index constant."""
        return constant(value, self.dtype)


def element_strides(spec: Spec, shape: Sequence[int], dim: int | None = None) -> list[int]:
    """Strides in elements, broadcast to a shape; 0 along `dim`.

    >>> import numpy as np
    >>> element_strides(Spec.dense((3, 1), np.dtype("f4")), (2, 3, 5))
    [0, 1, 0]
    """
    own = tuple(spec.shape) if dim is None else (*spec.shape[:dim], 1, *spec.shape[dim + 1:])
    strides = iteration_space.checked_broadcast_strides(own, spec.strides, tuple(shape))
    return [s // spec.dtype.itemsize for s in strides]


__all__ = ["THREADS", "Walk", "element_strides"]
