"""Kernels that choose: indices by weights, with replacement, and the order of equal keys of a permutation.

Sources: ATen's `cuda/MultinomialKernel.cu`, `cuda/Randperm.cuh`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....dtypes import NARROW
from ...scalar.scalar_ir import BOOL, Node, apply, cast, constant, select
from ..cuda_math.constants import F32, I32, I64, U32, U64
from ..kernel_ir import Kernel, KernelBuilder
from .streams import Seed, Stream, thread_number, unit_single

THREADS, SHUFFLE_THREADS = 128, 512


@lru_cache(64)
def choose(dtype: np.dtype, captured: bool = False) -> Kernel:
    """The kernel that draws indices by cumulative weights.

    Its grid has blocks for the samples of a row in the first dimension, and for rows in the second. Its buffers are the
    indices (rows, samples), the cumulative weights (rows, categories), the weights, the state where it is captured; its
    scalars those of `Seed`, the rows, the samples, the categories, the blocks of the grid in both dimensions (int64),
    and how many rows a block serves (int32).
    """
    b = KernelBuilder("draw_indices", THREADS)
    out, cumulative, weights = b.buffer(I64), b.buffer(dtype), b.buffer(dtype)
    seed = Seed(b, captured)
    rows, samples, categories, across, down = (b.scalar(I64) for _ in range(5))
    rounds = b.scalar(I32)
    column = thread_number(b)
    subsequence = cast(b.block_y, I64) * across * THREADS + column

    def element(buffer: object, at: Node) -> Node:
        found = b.load(buffer, at)  # type: ignore[arg-type]
        return cast(found, F32) if dtype in NARROW else found

    with b.loop(0, rounds) as number:
        row = cast(b.block_y, I64) + cast(number, I64) * down
        with b.when((row < rows) & (column < samples)):
            unit = cast(unit_single(seed.words(subsequence, cast(number, U64))[0]), dtype)
            unit = cast(unit, F32) if dtype in NARROW else unit
            first, last = b.local(constant(0, I64)), b.local(categories)
            searching = b.local(categories > 0)
            with b.loop_while(searching):
                low, high = b.get(first), b.get(last)
                middle = low + (high - low) / 2
                below = element(cumulative, row * categories + middle) < unit
                b.set(first, select(below, middle + 1, low))
                b.set(last, select(below, high, middle))
                b.set(searching, b.get(first) < b.get(last))
            found = b.get(first)
            b.set(first, select(apply("eq", found, categories), categories - 1, found))
            empty = b.local(b.get(first) > 0)
            with b.loop_while(empty):
                at = b.get(first)
                absent = apply("eq", element(weights, row * categories + at), 0.0)
                b.set(first, select(absent, at - 1, at))
                b.set(empty, absent & (b.get(first) > 0))
            b.store(out, row * samples + column, b.get(first))
    return b.kernel()


@lru_cache(8)
def shuffle_equal(captured: bool = False) -> Kernel:
    """The kernel that shuffles the values of each run of equal keys; the thread of a run's first key does it.

    Its buffers are the values and the sorted keys, int64, and the state where it is captured; its scalars those of
    `Seed`, then the number of keys.
    """
    b = KernelBuilder("shuffle_equal_keys", SHUFFLE_THREADS)
    values, keys = b.buffer(I64), b.buffer(I64)
    seed = Seed(b, captured)
    total = b.scalar(I64)
    at = thread_number(b)
    inside = at < total - 1
    key, after = b.load(keys, at, inside), b.load(keys, at + 1, inside)
    has_before = inside & (at > 0)
    before = b.load(keys, at - 1, has_before)
    begins = inside & apply("eq", key, after) & ~(has_before & apply("eq", before, key))
    with b.when(begins):
        stream = Stream(b, seed, at)
        size, counting = b.local(constant(1, I64)), b.local(constant(True, BOOL))
        with b.loop_while(counting):
            length = b.get(size) + 1
            b.set(size, length)
            more = at + length < total
            b.set(counting, more & apply("eq", b.load(keys, at + length, more), key))
        last = b.local(b.get(size) - 1)
        moving = b.local(constant(True, BOOL))
        with b.loop_while(moving):
            i = b.get(last)
            bound = cast(i, U32) + 1
            word = stream.word()
            other = cast(word - word / bound * bound, I64)
            one, two = b.load(values, at + i), b.load(values, at + other)
            b.store(values, at + i, two)
            b.store(values, at + other, one)
            b.set(last, i - 1)
            b.set(moving, i > 1)
    return b.kernel()


__all__ = ["SHUFFLE_THREADS", "THREADS", "choose", "shuffle_equal"]
