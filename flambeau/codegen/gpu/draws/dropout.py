"""Dropout as one kernel: it draws which elements are kept while it scales them. Source: ATen's `cuda/Dropout.cu`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....dtypes import NARROW
from ...scalar.scalar_ir import BOOL, Node, apply, cast, constant, fma, select
from ..cuda_math.constants import F32, F64, I32, I64, U64
from ..kernel_ir import Kernel, KernelBuilder
from .fills import units
from .streams import Seed, thread_number, unit_single

THREADS = 256
#: uniforms of a block of words
PER_BLOCK = 4


@lru_cache(64)
def dropout(dtype: np.dtype, vector: int, captured: bool = False) -> Kernel:
    """The kernel of dropout of dense arrays.

    Its buffers are the result, which elements are kept (bool), the input, the state where it is captured; its scalars
    those of `Seed`, the number of elements, that of threads, that of rounds of each thread, the probability to keep an
    element, and its inverse (float64 for arrays of float64, else float32).

    Args:
        dtype: of input and result.
        vector: neighbouring elements of a round: 8, 4 or 2, or 1: four elements whose distance is that of all threads.
        captured: whether it is part of a CUDA graph (`Seed`).
    """
    b = KernelBuilder("dropout", THREADS)
    out, mask, source = b.buffer(dtype), b.buffer(BOOL), b.buffer(dtype)
    seed = Seed(b, captured)
    total, threads, rounds = b.scalar(I64), b.scalar(I64), b.scalar(I32)
    computed = F64 if dtype == F64 else F32
    keep, scale = b.scalar(computed), b.scalar(computed)
    subsequence = thread_number(b)

    def words(number: Node) -> list[Node]:
        return [unit_single(word) for word in seed.words(subsequence, cast(number, U64))]

    def kept_and_value(unit: Node, element: Node) -> tuple[Node, Node]:
        kept = cast(unit, computed) < keep
        value = cast(element, computed) if dtype in NARROW else element
        return kept, cast(value * cast(cast(kept, F32), computed) * scale, dtype)

    with b.loop(0, rounds) as number:
        wide = cast(number, I64)
        if vector == 1:
            for k, unit in enumerate(words(number)):
                place = subsequence + (wide * PER_BLOCK + k) * threads
                inside = place < total
                kept, value = kept_and_value(unit, b.load(source, place, inside))
                b.store(out, place, value, inside)
                b.store(mask, place, kept, inside)
            continue_with: list[Node] = []
        elif vector == 2:
            four = words(number / 2)
            second = apply("ne", number & 1, 0)
            continue_with = [select(second, four[2 + k], four[k]) for k in range(2)]
        else:
            continue_with = [unit for block in range(vector // PER_BLOCK)
                             for unit in words(number * (vector // PER_BLOCK) + block)]
        if continue_with:
            place = (subsequence + wide * threads) * vector
            inside = place < total
            found = [kept_and_value(unit, element) for unit, element in zip(
                continue_with, b.load_vector(source, place, vector, inside), strict=True)]
            b.store_vector(out, place, [value for _, value in found], inside)
            b.store_vector(mask, place, [kept for kept, _ in found], inside)
    return b.kernel()


@lru_cache(16)
def dropout_in_sequence(captured: bool = False) -> Kernel:
    """The kernel of dropout of attention's weights, row-major float32: an element has its own word of one sequence.

    Its buffers are those of `dropout`; its scalars those of `Seed`, the number of elements, the probability to drop an
    element, and the factor of the others. Source: ATen's memory-efficient attention (`mem_eff_attention`).
    """
    b = KernelBuilder("attention_dropout", THREADS)
    out, mask, source = b.buffer(F32), b.buffer(BOOL), b.buffer(F32)
    seed = Seed(b, captured)
    total, dropped, scale = b.scalar(I64), b.scalar(F32), b.scalar(F32)
    number = thread_number(b)
    for k, word in enumerate(seed.words(constant(0, I64), cast(number, U64))):
        place = number * PER_BLOCK + k
        inside = place < total
        kept = unit_single(word) > dropped
        b.store(out, place, b.load(source, place, inside) * select(kept, scale, constant(0.0, F32)), inside)
        b.store(mask, place, kept, inside)
    return b.kernel()


@lru_cache(64)
def slopes(dtype: np.dtype, captured: bool = False) -> Kernel:
    """The kernel that draws the slopes of `rrelu` in training: 1 for positive elements.

    Its buffers are the slopes, the input, the state where it is captured; its scalars those of `Seed`, the number of
    elements, of threads, of blocks of words of each thread, the lower bound and the distance of the bounds (float64).
    """
    b = KernelBuilder("draw_slopes", THREADS)
    noise, source = b.buffer(dtype), b.buffer(dtype)
    seed = Seed(b, captured)
    total, threads, blocks = b.scalar(I64), b.scalar(I64), b.scalar(I32)
    low, distance = b.scalar(F64), b.scalar(F64)
    subsequence = thread_number(b)
    computed = F64 if dtype == F64 else F32

    def rounded(x: Node) -> Node:
        return cast(cast(x, dtype), computed) if dtype in NARROW else x

    with b.loop(0, blocks) as number:
        drawn = units(seed.words(subsequence, cast(number, U64)), dtype)
        for k, unit in enumerate(drawn):
            place = subsequence + (cast(number, I64) * len(drawn) + k) * threads
            inside = place < total
            element = cast(b.load(source, place, inside), computed)
            slope = cast(fma(cast(rounded(unit), F64), distance, low), computed)
            b.store(noise, place, select(element <= 0.0, rounded(slope), constant(1.0, computed)), inside)
    return b.kernel()


__all__ = ["PER_BLOCK", "THREADS", "dropout", "dropout_in_sequence", "slopes"]
