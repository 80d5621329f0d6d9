"""Fragments: which thread of a warp holds which elements of the matrices that the tensor cores multiply.

The layouts are those of PTX's `mma` instructions (PTX ISA, "Warp-level matrix instructions"). A thread's group is its
number in the warp divided by 4; its place, the remainder.

>>> SHAPES["m16n8k16.bf16"].a(lane=5)[:4]
[(1, 2), (1, 3), (9, 2), (9, 3)]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...dtypes import BFLOAT16, HALF

#: a row and a column
Place = tuple[int, int]


class Shape(NamedTuple):
    """The shape of one multiplication, (m, k) times (k, n), and the dtype of its factors; sums are float32.

    Attributes:
        intrinsic: LLVM's name.
    """

    m: int
    n: int
    k: int
    dtype: np.dtype
    intrinsic: str

    @property
    def run(self) -> int:
        """The number of neighbours along k that a thread holds: a register has 32 bits."""
        return 4 // self.dtype.itemsize

    def a(self, lane: int) -> list[Place]:
        """The elements (row, k) of the left matrix that a thread holds, in the order of its registers."""
        group, place = divmod(lane, 4)
        half = self.k // 2
        return [(group + 8 * low, half * far + place * self.run + each)
                for far in (0, 1) for low in (0, 1) for each in range(self.run)]

    def b(self, lane: int) -> list[Place]:
        """The elements (k, column) of the right matrix that a thread holds."""
        group, place = divmod(lane, 4)
        return [(self.k // 2 * far + place * self.run + each, group) for far in (0, 1) for each in range(self.run)]

    def c(self, lane: int) -> list[Place]:
        """The elements (row, column) of the sums that a thread holds."""
        group, place = divmod(lane, 4)
        return [(group + 8 * low, place * 2 + each) for low in (0, 1) for each in (0, 1)]


SHAPES = {
    "m16n8k16.bf16": Shape(16, 8, 16, BFLOAT16, "nvvm.mma.m16n8k16.row.col.bf16"),
    "m16n8k16.f16": Shape(16, 8, 16, HALF, "nvvm.mma.m16n8k16.row.col.f32.f32"),
    "m16n8k8.tf32": Shape(16, 8, 8, np.dtype(np.float32), "nvvm.mma.m16n8k8.row.col.tf32"),
}

__all__ = ["SHAPES", "Shape"]
