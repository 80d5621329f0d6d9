"""PyTorch's generator on GPUs, Philox4x32-10: the state, and words of each thread.

Thread t has the subsequence t of the seed, at the generator's offset. Each call yields four words. The offset grows by
four for each call of a thread, so numbers do not depend on what was drawn before on other tensors. Distributions are
kernels of the device (`codegen.gpu.draws`).

Source: ATen's `cuda/DistributionTemplates.h`; cuRAND's documentation; Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3" (2011).
"""

from __future__ import annotations

from typing import Any

import numpy as np

DEFAULT_SEED = 67280421310721
_PER_CALL = 4
_KEYS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_LOW, _WORD = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Four words of each counter: ten rounds of Philox4x32.

    Args:
        counter: four words, numbers or arrays, the lowest first.
        key: two words.

    >>> [hex(int(word)) for word in philox((0, 0, 0, 0), (0, 0))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = (np.asarray(each, np.uint64) for each in counter)
    k0, k1 = (np.uint64(each) for each in key)
    for _ in range(10):
        p0, p1 = _FACTORS[0] * c0, _FACTORS[1] * c2
        c0, c1, c2, c3 = (p1 >> _WORD) ^ c1 ^ k0, p1 & _LOW, (p0 >> _WORD) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _KEYS[0]) & _LOW, (k1 + _KEYS[1]) & _LOW
    return c0, c1, c2, c3


class PhiloxEngine:
    """The state of a generator: its seed, and the offset that the next operator begins at.

    Args:
        blocks: of 256 threads that the device runs at once.

    Attributes:
        initial_seed, offset: the state.
        graph: the part of a CUDA graph that the numbers are drawn for while it is captured
            (`accelerated.graph_draws`); None: they are drawn at once.

    >>> engine = PhiloxEngine(864).seed(0)
    >>> [f"{int(word) / 2**32:.4f}" for word in engine.words(range(4), engine.advance(4), 0)[0]]
    ['0.3990', '0.5167', '0.0249', '0.9401']
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.graph: Any = None
        self.initial_seed, self.offset = DEFAULT_SEED, 0

    def seed(self, seed: int) -> PhiloxEngine:
        """Set the seed, and the offset to 0; the engine."""
        self.initial_seed, self.offset = seed % 2 ** 64, 0
        return self

    def advance(self, calls: int) -> int:
        """The present offset; the next operator begins after so many words of each thread."""
        offset = self.offset
        self.offset += -(-calls // _PER_CALL) * _PER_CALL
        return offset

    def words(self, threads: Any, offset: int, call: int) -> tuple[np.ndarray, ...]:
        """The four words that threads draw at their `call`-th call, the first at `offset`."""
        counter = offset // _PER_CALL + call
        subsequence = np.asarray(threads, np.uint64)
        return philox((counter & 0xFFFFFFFF, counter >> 32, subsequence & _LOW, subsequence >> _WORD),
                      (self.initial_seed & 0xFFFFFFFF, self.initial_seed >> 32))


__all__ = ["DEFAULT_SEED", "PhiloxEngine", "philox"]
