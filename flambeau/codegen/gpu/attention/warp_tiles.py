"""Tiles of attention: matrices in shared memory, and their fragments for the tensor cores.

A warp has 16 rows of a product. The fragment of its sums is, cast to the narrow dtype, the left fragment of the next
product: probabilities go from one to the other without leaving the registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....dtypes import BFLOAT16, HALF
from ....runtime.launch import Spec
from ...scalar.scalar_ir import Node, cast, constant
from ..coordinates import INT32, INT64, coordinates, index_dtype, offset
from ..kernel_ir import WARP, KernelBuilder
from ..launches import VECTOR
from ..statements import Buffer

#: rows of a block, for which it has as many warps as needed; rows of a step
ROWS, WARP_ROWS = 64, 16
THREADS = ROWS // WARP_ROWS * WARP
#: the widest heads: sums of more would not fit into registers
MAX_WIDTH = 128
F32 = np.dtype(np.float32)
NAMES = {BFLOAT16: "m16n8k16.bf16", HALF: "m16n8k16.f16"}

#: the sums of 16 x n products, by fragments of 8 columns
Sums = list[list[Node]]


class Array(NamedTuple):
    """An array (batch, heads, length, width): its buffer, the offset of this block's head, strides in elements."""

    buffer: Buffer
    base: Node
    row: int
    column: int
    length: int


class Heads:
    """The threads and the operands of a block: one head, some rows.

    Args:
        name: of the kernel.
        outputs, inputs: their layouts: (batch, heads, length, width), or (batch, heads, length).
        tiles: blocks of a head.

    Attributes:
        head, tile: the block's.
        warp, lane, group, place: the thread's; see `fragments`.
    """

    def __init__(self, name: str, outputs: Sequence[Spec], inputs: Sequence[Spec], tiles: int, width: int) -> None:
        self.b = b = KernelBuilder(name, THREADS)
        specs = [*outputs, *inputs]
        strides = [[s // each.dtype.itemsize for s in each.strides] for each in specs]
        widest = max(specs, key=lambda each: len(each.shape)).shape
        self.dtype = index_dtype(widest, [[*each, *(0 for _ in range(len(widest) - len(each)))] for each in strides],
                                 max(tiles * widest[0] * widest[1], 1))
        block, thread = (each if self.dtype == INT32 else cast(each, INT64) for each in (b.block, b.thread))
        self.thread, self.zero, self.width = thread, constant(0, self.dtype), width
        self.tile, at_head, at_batch = coordinates(block, [tiles, widest[1], widest[0]])
        self.arrays = []
        for spec, own in zip(specs, strides, strict=True):
            base = offset([at_batch, at_head], own[:2], self.zero)
            self.arrays.append(Array(b.buffer(spec.dtype), base, own[2], own[3] if len(own) > 3 else 0, spec.shape[2]))
        self.warp = thread / WARP
        lane = thread - self.warp * WARP
        self.group = lane / 4
        self.place = lane - self.group * 4

    @property
    def padded(self) -> int:
        """The width, padded to the depth of a fragment."""
        return -(-self.width // 16) * 16

    def number(self, value: int) -> Node:
        """An index constant."""
        return constant(value, self.dtype)

    def stage(self, array: Array, first: Node, rows: int, to: Buffer | None, transposed: Buffer | None, vector: int
              ) -> None:
        """Copy rows of an array to shared memory, as they are and transposed; 0 outside.

        Args:
            array: the array.
            first: the first row.
            rows: their number.
            to: (rows, padded width + 8), or None.
            transposed: (padded width, rows + 8), or None.
            vector: elements of an access.
        """
        b, padded = self.b, self.padded
        per_row = padded // vector
        for part in range(-(-rows * per_row // THREADS)):
            index = self.thread + part * THREADS
            row = index / per_row
            column = (index - row * per_row) * vector
            inside = (first + row < array.length) & (column < self.width)
            at = array.base + (first + row) * array.row + column * array.column
            values = b.load_vector(array.buffer, at, vector, inside)
            fits = None if rows * per_row % THREADS == 0 else row < rows
            if to is not None:
                b.store_vector(to, row * (padded + 8) + column, values, fits)
            if transposed is not None:
                for k, value in enumerate(values):
                    b.store(transposed, (column + k) * (rows + 8) + row, value, fits)

    def left_from_memory(self, array: Array, first: Node) -> list[list[Node]]:
        """The warp's 16 rows of an array as left fragments, one for each 16 of the width."""
        found = []
        for k in range(0, self.padded, 16):
            one = []
            for half in (0, 8):
                for low in (0, 8):
                    row = first + self.warp * WARP_ROWS + (self.group + low)
                    for each in (0, 1):
                        column = self.place * 2 + (k + half + each)
                        inside = (row < array.length) & (column < self.width)
                        at = array.base + row * array.row + column * array.column
                        one.append(self.b.load(array.buffer, at, inside))
            found.append(one)
        return found

    def right(self, tile: Buffer, pitch: int, column: int, k: int) -> list[Node]:
        """A right fragment from shared memory, in which its columns are rows."""
        found: list[Node] = []
        for half in (0, 8):
            at = (self.group + column) * pitch + self.place * 2 + (k + half)
            found += self.b.load_vector(tile, at, 2)
        return found

    def product(self, left: Sequence[Sequence[Node]], tile: Buffer, pitch: int, columns: int, sums: Sums | None = None
                ) -> Sums:
        """The warp's rows times a matrix whose columns are rows in shared memory, added to `sums`."""
        name, zero = NAMES[tile.dtype], constant(0.0, F32)
        result = sums or [[zero] * 4 for _ in range(columns // 8)]
        for number, one in enumerate(left):
            result = [self.b.mma(name, one, self.right(tile, pitch, 8 * j, 16 * number), c)
                      for j, c in enumerate(result)]
        return result

    def places(self) -> list[tuple[Node, Node]]:
        """Rows, within the block, and columns of the thread's elements of the first 8 columns."""
        return [(self.warp * WARP_ROWS + (self.group + 8 * low), self.place * 2 + each)
                for low in (0, 1) for each in (0, 1)]


def as_left(sums: Sums, dtype: np.dtype) -> list[list[Node]]:
    """The sums as left fragments: 16 columns of one are the depth of the other."""
    return [[cast(x, dtype) for x in (*sums[j], *sums[j + 1])] for j in range(0, len(sums), 2)]


def vector_width(specs: Sequence[Spec]) -> int:
    """Elements of an access to these arrays, if they are aligned: 8, or 1."""
    fit = all(each.strides[3] == each.dtype.itemsize and each.shape[3] % 8 == 0
              and not any(s % VECTOR for s in each.strides[:3]) for each in specs)
    return 8 if fit else 1


def check(query: Spec, others: Sequence[Spec]) -> None:
    """Check dtypes and widths.

    Raises:
        TypeError: another dtype than float16 and bfloat16.
        NotImplementedError: heads are too wide.
    """
    if query.dtype not in NAMES or any(each.dtype != query.dtype for each in others):
        raise TypeError(f"flash attention is of float16 or bfloat16, not {query.dtype}: in float32 the products and "
                        "the softmax are kernels of their own")
    if query.shape[-1] > MAX_WIDTH or others[-1].shape[-1] != query.shape[-1]:
        raise NotImplementedError(f"flash attention of heads {query.shape[-1]} and {others[-1].shape[-1]} wide: at "
                                  f"most {MAX_WIDTH}, and all alike; use products and softmax")
