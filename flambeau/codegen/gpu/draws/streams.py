"""Philox streams in kernels: the words of a thread's subsequence, and uniforms and normals that are made of them.

Source of the transforms: cuRAND's documentation. The normals are those of Box and Muller.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...scalar.scalar_ir import Node, apply, cast, constant, fma, select, sqrt
from ..cuda_math import double_precision, single_precision
from ..cuda_math.constants import F32, F64, I64, U32, U64
from ..kernel_ir import KernelBuilder
from ..philox import block
from ..statements import Local

_TURN = float(np.float32(2.0**-32) * np.float32(6.2831855))


class Seed:
    """The first parameters of a kernel that draws: where its numbers come from.

    A kernel of a CUDA graph (`captured`) reads the seed and the offset from memory, an array of two uint64, which is
    set before each replay; its scalar is the distance of its first block of words from that offset. Otherwise the
    scalars are the seed and the number of the first block.

    Args:
        b: the kernel's builder.
        captured: whether it is a graph's.

    Attributes:
        key: two words.
        first: the number of the first block of a thread's words.
    """

    def __init__(self, b: KernelBuilder, captured: bool) -> None:
        if captured:
            state = b.buffer(U64)
            distance = b.scalar(U64)
            seed, offset = b.load(state, 0), b.load(state, 1)
            self.first = offset / 4 + distance
        else:
            seed, self.first = b.scalar(U64), b.scalar(U64)
        self.key = [cast(seed, U32), cast(seed / (1 << 32), U32)]

    def words(self, subsequence: Node, number: Node) -> list[Node]:
        """The four words of a block.

        Args:
            subsequence: the thread's number, an int64.
            number: of the block, an uint64, counted from the first.
        """
        counter, wide = self.first + number, cast(subsequence, U64)
        return block([cast(counter, U32), cast(counter / (1 << 32), U32), cast(wide, U32),
                      cast(wide / (1 << 32), U32)], self.key)


def thread_number(b: KernelBuilder) -> Node:
    """The number of a thread among all of a one-dimensional grid, an int64."""
    return cast(b.block, I64) * b.threads + cast(b.thread, I64)


# ----- words to numbers -----

def unit_single(word: Node) -> Node:
    """A float32 over (0, 1]."""
    return fma(cast(word, F32), constant(2.0**-32, F32), constant(2.0**-33, F32))


def unit_doubles(words: Sequence[Node]) -> list[Node]:
    """Two float64 over (0, 1] of four words."""
    return [fma(_digits(words, i), constant(2.0**-53, F64), constant(2.0**-54, F64)) for i in (0, 2)]


def _digits(words: Sequence[Node], i: int) -> Node:
    return cast(cast(words[i], U64) ^ (cast(words[i + 1], U64) * (1 << 21)), F64)


def normal_singles(x: Node, y: Node) -> list[Node]:
    """Two float32 normals of two words."""
    angle = fma(cast(y, F32), constant(_TURN, F32), constant(_TURN / 2, F32))
    radius = sqrt(single_precision.log(unit_single(x)) * -2.0)
    return [apply("sin_approx", angle) * radius, apply("cos_approx", angle) * radius]


def normal_doubles(words: Sequence[Node]) -> list[Node]:
    """Two float64 normals of four words."""
    u = fma(_digits(words, 0), constant(2.0**-53, F64), constant(2.0**-54, F64))
    v = fma(_digits(words, 2), constant(2.0**-52, F64), constant(2.0**-53, F64))
    radius = sqrt(double_precision.log(u) * -2.0)
    sine, cosine = double_precision.sincospi(v)
    return [sine * radius, cosine * radius]


def wide_words(words: Sequence[Node]) -> list[Node]:
    """Two 64-bit numbers of four words."""
    return [cast(words[i], U64) * (1 << 32) | cast(words[i + 1], U64) for i in (0, 2)]


class Stream:
    """The words of a thread one by one, as many as its loops ask for.

    Args:
        b: the kernel's builder.
        seed: of the kernel.
        subsequence: the thread's number, an int64.
    """

    def __init__(self, b: KernelBuilder, seed: Seed, subsequence: Node) -> None:
        self.b, self.seed, self.subsequence = b, seed, subsequence
        self._drawn = b.local(constant(0, U32))
        self._words: list[Local] = [b.local(constant(0, U32)) for _ in range(4)]
        self._has_extra, self._extra = b.local(constant(False, np.bool_)), b.local(constant(0.0, F32))

    def word(self) -> Node:
        """The next word."""
        b = self.b
        drawn = b.get(self._drawn)
        with b.when(apply("eq", drawn & 3, 0)):
            for local, word in zip(self._words, self.seed.words(self.subsequence, cast(drawn / 4, U64)), strict=True):
                b.set(local, word)
        first, second, third, fourth = map(b.get, self._words)
        place = drawn & 3
        low = select(apply("eq", place, 0), first, second)
        high = select(apply("eq", place, 2), third, fourth)
        b.set(self._drawn, drawn + 1)
        kept = b.local(select(place < 2, low, high))
        return b.get(kept)

    def uniform(self) -> Node:
        """A float32 over (0, 1]."""
        return unit_single(self.word())

    def normal(self) -> Node:
        """A float32 normal; of each pair, the second is kept for the next call."""
        b = self.b
        result = b.local(b.get(self._extra))
        had = b.get(self._has_extra)
        with b.when(~had):
            one, other = normal_singles(self.word(), self.word())
            b.set(result, one)
            b.set(self._extra, other)
        b.set(self._has_extra, ~had)
        return b.get(result)


__all__ = ["Seed", "Stream", "normal_doubles", "normal_singles", "thread_number", "unit_doubles", "unit_single",
           "wide_words"]
