"""Tiles of a matrix product in shared memory: how they are filled, and how threads multiply them."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

import numpy as np

from ...scalar.scalar_ir import Node, constant, fma
from .. import fragments
from ..kernel_ir import WARP, KernelBuilder
from ..launches import VECTOR
from ..statements import Buffer, Local
from .tiles import Tile

F32 = np.dtype(np.float32)


class SharedTile(NamedTuple):
    """A tile in shared memory: element (i, k), i along M or N, is at i * across + k * along."""

    buffer: Buffer
    across: int
    along: int


class Stage:
    """The way of a matrix's tiles from memory through registers to shared memory.

    Neighbouring threads copy neighbours in memory.

    Args:
        b: the kernel's builder.
        thread: the thread's index.
        threads: of the block.
        buffer, base: the matrix, and the offset of its first element.
        extents: of the tile: along M or N, and along K.
        strides: the matrix's along these dimensions, in elements.
        across: the tile's first index along M or N, and the matrix's extent.
        depth: the matrix's extent along K.
        to: the tile.
    """

    def __init__(self, b: KernelBuilder, thread: Node, threads: int, buffer: Buffer, base: Node,
                 extents: tuple[int, int], strides: tuple[int, int], across: tuple[Node, int], depth: int,
                 to: SharedTile) -> None:
        self.b, self.buffer, self.base, self.strides, self.depth, self.to = b, buffer, base, strides, depth, to
        self.first, self.extent = across
        self.exact, self.deep = self.extent % extents[0] == 0, depth % extents[1] == 0
        self.places: list[tuple[Node, Node]] = []
        total, along = extents[0] * extents[1], abs(strides[1]) <= abs(strides[0])
        assert total % threads == 0
        for part in range(total // threads):
            index = thread + part * threads
            fast = extents[1] if along else extents[0]
            slow = index / fast
            quick = index - slow * fast
            self.places.append((slow, quick) if along else (quick, slow))
        self.held: list[Local] = []

    def fetch(self, step: Node) -> None:
        """Read the elements of the tile that begins at `step` along K; 0 outside the matrix."""
        for number, (i, k) in enumerate(self.places):
            row, column = self.first + i, step + k
            inside = column < self.depth
            if not self.exact:
                inside = inside & (row < self.extent)
            at = self.base
            for place, stride in ((row, self.strides[0]), (column, self.strides[1])):
                if stride:
                    at = at + (place if stride == 1 else place * stride)
            value = self.b.load(self.buffer, at, inside)
            if number < len(self.held):
                self.b.set(self.held[number], value)
            else:
                self.held.append(self.b.local(value))

    def put(self) -> None:
        """Write the elements to shared memory."""
        for (i, k), local in zip(self.places, self.held, strict=True):
            self.b.store(self.to.buffer, i * self.to.across + k * self.to.along, self.b.get(local))


class Cores:
    """Products by the cores: each thread has a part of C in registers, and reads rows of both tiles as vectors."""

    def __init__(self, b: KernelBuilder, tile: Tile, dtype: np.dtype, thread: Node) -> None:
        self.b, self.tile = b, tile
        self.width = VECTOR // dtype.itemsize
        pitch_m, pitch_n = tile.m + self.width, tile.n + self.width
        self.left = SharedTile(b.shared(dtype, tile.k * pitch_m), 1, pitch_m)
        self.right = SharedTile(b.shared(dtype, tile.k * pitch_n), 1, pitch_n)
        per_row = tile.n // tile.columns
        self.row = thread / per_row * tile.rows
        self.column = (thread - thread / per_row * per_row) * tile.columns
        zero = constant(0.0, dtype)
        self.sums = [[b.local(zero) for _ in range(tile.columns)] for _ in range(tile.rows)]

    def step(self) -> None:
        """Add the product of the tiles in shared memory."""
        b, tile = self.b, self.tile
        sums = [[b.get(each) for each in row] for row in self.sums]
        for k in range(tile.k):
            a = self._vector(self.left, self.row, k, tile.rows)
            c = self._vector(self.right, self.column, k, tile.columns)
            sums = [[fma(x, y, total) for y, total in zip(c, row, strict=True)] for x, row in zip(a, sums, strict=True)]
        for row, values in zip(self.sums, sums, strict=True):
            for local, value in zip(row, values, strict=True):
                b.set(local, value)

    def _vector(self, tile: SharedTile, first: Node, k: int, count: int) -> list[Node]:
        width = gcd(self.width, count)
        found: list[Node] = []
        for i in range(0, count, width):
            found += self.b.load_vector(tile.buffer, first + (i + k * tile.along), width)
        return found

    def results(self) -> Iterator[tuple[Node, Node, Node]]:
        """Row, column and value of each element of the thread's part."""
        for i, row in enumerate(self.sums):
            for j, local in enumerate(row):
                yield self.row + i, self.column + j, self.b.get(local)


class TensorCores:
    """Products by the tensor cores: each warp has a part of C, in fragments of 16 x 8."""

    def __init__(self, b: KernelBuilder, tile: Tile, kind: str, thread: Node) -> None:
        self.b, self.tile = b, tile
        self.name = next(each for each in fragments.SHAPES if each.endswith(f".{kind}"))
        self.shape = shape = fragments.SHAPES[self.name]
        pitch = tile.k + VECTOR // shape.dtype.itemsize  # so that the rows of a fragment lie in different banks
        self.left = SharedTile(b.shared(shape.dtype, tile.m * pitch), pitch, 1)
        self.right = SharedTile(b.shared(shape.dtype, tile.n * pitch), pitch, 1)
        warp = thread / WARP
        lane = thread - warp * WARP
        per_row = tile.n // tile.columns
        self.row = warp / per_row * tile.rows
        self.column = (warp - warp / per_row * per_row) * tile.columns
        self.group = lane / 4
        self.place = lane - self.group * 4
        zero = constant(0.0, F32)
        self.sums = {(i, j): [b.local(zero) for _ in range(4)] for i in range(0, tile.rows, shape.m)
                     for j in range(0, tile.columns, shape.n)}

    def step(self) -> None:
        """Add the product of the tiles in shared memory."""
        b, tile, shape = self.b, self.tile, self.shape
        for k in range(0, tile.k, shape.k):
            left = {i: self._fragment(self.left, self.row + (self.group + i), (0, 8), k)
                    for i in range(0, tile.rows, shape.m)}
            right = {j: self._fragment(self.right, self.column + (self.group + j), (0,), k)
                     for j in range(0, tile.columns, shape.n)}
            for (i, j), locals_ in self.sums.items():
                found = b.mma(self.name, left[i], right[j], [b.get(each) for each in locals_])
                for local, value in zip(locals_, found, strict=True):
                    b.set(local, value)

    def _fragment(self, tile: SharedTile, row: Node, rows: tuple[int, ...], k: int) -> list[Node]:
        """The elements that the thread holds, in the order of `fragments`: of these rows, for both halves of K."""
        found: list[Node] = []
        for half in (0, self.shape.k // 2):
            for more in rows:
                at = (row + more) * tile.across + self.place * self.shape.run + (k + half)
                found += self.b.load_vector(tile.buffer, at, self.shape.run)
        return found

    def results(self) -> Iterator[tuple[Node, Node, Node]]:
        """Row, column and value of each element of the thread's fragments."""
        for (i, j), locals_ in self.sums.items():
            for number, local in enumerate(locals_):
                low, each = divmod(number, 2)
                yield (self.row + (self.group + (i + 8 * low)), self.column + (self.place * 2 + (j + each)),
                       self.b.get(local))


__all__ = ["Cores", "SharedTile", "Stage", "TensorCores"]
