"""Philox 4x32-10 on the GPU: uniform numbers, and dropout that draws its mask in the kernel that applies it.

`uniform` has the numbers of the CPU's kernel (`codegen.random.philox`): element i of a draw depends on i, the draw and
a 64-bit state alone. Reference: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...runtime.launch import Spec
from ..scalar.scalar_ir import Node, cast, constant, select, to_opmath
from .coordinates import INT64, count_blocks
from .kernel_ir import KernelBuilder
from .launches import DeviceLaunch, launch

U32, U64 = np.dtype(np.uint32), np.dtype(np.uint64)
THREADS = 256
_MULTIPLIERS, _KEY_STEPS, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10


def block(counter: Sequence[Node], key: Sequence[Node]) -> list[Node]:
    """The four words of a block, from a counter of four 32-bit words and a key of two."""
    words, keys = list(counter), list(key)
    for _ in range(_ROUNDS):
        high, low = [], []
        for multiplier, x in zip(_MULTIPLIERS, words[::2], strict=True):
            product = cast(x, U64) * multiplier
            high.append(cast(product / (1 << 32), U32))
            low.append(cast(product, U32))
        words = [high[1] ^ words[1] ^ keys[0], low[1], high[0] ^ words[3] ^ keys[1], low[0]]
        keys = [k + step for k, step in zip(keys, _KEY_STEPS, strict=True)]
    return words


def unit_float(word: Node) -> Node:
    """A float32 in [0, 1) from the upper 24 bits of a word."""
    return cast(word / (1 << 8), np.float32) * 2.0**-24


def unit_double(high: Node, low: Node) -> Node:
    """A float64 in [0, 1) from the upper 53 bits of two words."""
    bits = cast(high, U64) * (1 << 32) | cast(low, U64)
    return cast(bits / (1 << 11), np.float64) * 2.0**-53


def _words(b: KernelBuilder, state: Node, draw: int, number: Node) -> list[Node]:
    """The words of block `number`, an int64."""
    unsigned = cast(state, U64)
    key = [cast(unsigned, U32), cast(unsigned / (1 << 32), U32)]
    wide = cast(number, U64)
    zero = constant(0, U32)
    return block([cast(wide, U32), cast(wide / (1 << 32), U32), constant(draw, U32), zero], key)


def uniform(out: Spec, state: Spec, draw: int) -> list[DeviceLaunch]:
    """The launch that fills a dense array with uniform numbers in [0, 1).

    Args:
        out: the output, float32 or float64, dense.
        state: an int64.
        draw: the number of the draw, which different draws of a program differ in.

    Raises:
        TypeError: other dtypes.
    """
    if out.dtype not in (np.float32, np.float64) or state.dtype != np.int64:
        raise TypeError(f"uniform numbers are float32 or float64, the state is int64, not {out.dtype}, {state.dtype}")
    if not out.size:
        return []
    b = KernelBuilder("philox", THREADS)
    stored, seed = b.buffer(out.dtype), b.buffer(state.dtype)
    per_block = 4 if out.dtype == np.float32 else 2
    number = cast(b.block, INT64) * THREADS + cast(b.thread, INT64)
    words = _words(b, b.load(seed, 0), draw, number)
    values = [unit_float(each) for each in words] if per_block == 4 else [
        unit_double(words[0], words[1]), unit_double(words[2], words[3])]
    for k, value in enumerate(values):
        place = number * per_block + k
        b.store(stored, place, value, place < out.size)
    return [launch(b.kernel(), count_blocks(out.size, THREADS * per_block))]


def dropout(outputs: Sequence[Spec], x: Spec, state: Spec, p: float, draw: int) -> list[DeviceLaunch]:
    """The launch of dropout of a dense array: x / (1 - p) where a uniform number is at least p, else 0.

    Args:
        outputs: the result, and optionally the mask (bool) for the backward pass; dense.
        x: the input, dense, of a floating dtype.
        state: an int64.
        p: the probability of a zero, below 1.
        draw: the number of the draw.

    Raises:
        ValueError: p is not in [0, 1).
    """
    if not 0 <= p < 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    total = prod(x.shape)
    if not total:
        return []
    b = KernelBuilder("dropout", THREADS)
    stored = [b.buffer(each.dtype) for each in outputs]
    source, seed = b.buffer(x.dtype), b.buffer(state.dtype)
    number = cast(b.block, INT64) * THREADS + cast(b.thread, INT64)
    for k, word in enumerate(_words(b, b.load(seed, 0), draw, number)):
        place = number * 4 + k
        inside = place < total
        value = to_opmath(b.load(source, place, inside))
        keep = unit_float(word) >= p
        kept = select(keep, value * (1 / (1 - p)), constant(0.0, value.dtype))
        for buffer, each in zip(stored, (kept, keep), strict=False):
            b.store(buffer, place, each, inside)
    return [launch(b.kernel(), count_blocks(total, THREADS * 4))]


__all__ = ["block", "dropout", "uniform", "unit_double", "unit_float"]
