"""PyTorch's generator on GPUs, Philox4x32-10, and its distributions: which thread draws which element.

An operator of n elements runs T = 256 * min(ceil(n / 256), blocks of the device) threads. Thread t has the subsequence
t of the seed, at the generator's offset. Each call yields four words, or two doubles, which go to the elements
t, t + T, t + 2T, ... The offset then grows by four for each call of a thread, so numbers do not depend on what was
drawn before on other tensors, but on the device: from `256 * blocks` elements on.

Source: ATen's `cuda/DistributionTemplates.h` and `cuda/Dropout.cu`; cuRAND's documentation; Salmon et al., "Parallel
random numbers: as easy as 1, 2, 3" (2011). Words and uniforms are exact; logarithms, sines and cosines are the host's,
in double precision and rounded, where a GPU's differ in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

DEFAULT_SEED = 67280421310721
_BLOCK = 256
_PER_CALL = 4
_KEYS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_LOW, _WORD = np.uint64(0xFFFFFFFF), np.uint64(32)
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_INV32 = np.float32(2.0 ** -32)
_INV53 = 2.0 ** -53


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

    >>> [f"{x:.4f}" for x in PhiloxEngine(864).seed(0).uniform(4, np.dtype(np.float32))]
    ['0.3990', '0.5167', '0.0249', '0.9401']
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
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

    def _spread(self, n: int, per_call: int, draw: Callable[[tuple[np.ndarray, ...]], list[np.ndarray]]) -> np.ndarray:
        """n numbers, of which a call of a thread makes `per_call`, in the order of the elements."""
        if not n:
            return draw(tuple(np.zeros(0, np.uint64) for _ in range(4)))[0]
        threads = _BLOCK * min(-(-n // _BLOCK), self.blocks)
        calls = (n - 1) // (threads * per_call) + 1
        offset = self.advance(calls * _PER_CALL)
        rows = []
        for call in range(calls):
            live = min(threads, n - call * threads * per_call)
            drawn = draw(self.words(np.arange(live, dtype=np.uint64), offset, call))
            rows += drawn if live == threads else drawn[:1]
        return np.concatenate(rows)[:n]

    # ----- uniforms over (0, 1] and normals -----

    def _unit(self, n: int, dtype: np.dtype) -> np.ndarray:
        return self._spread(n, 2, _doubles) if dtype == _F64 else self._spread(n, 4, _singles)

    def _gaussian(self, n: int, dtype: np.dtype) -> np.ndarray:
        return self._spread(n, 2, _normal_doubles) if dtype == _F64 else self._spread(n, 4, _normal_singles)

    # ----- distributions: the names and arguments of `kernels.random` -----

    def uniform(self, n: int, dtype: np.dtype, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """n samples of the uniform distribution over [low, high)."""
        unit = self._unit(n, dtype)
        kind = unit.dtype.type
        unit[unit == 1] = 0
        return unit * kind(high - low) + kind(low)

    def normal(self, n: int, dtype: np.dtype, mean: float = 0.0, std: float = 1.0, contiguous: bool = True
               ) -> np.ndarray:
        """n samples of a normal distribution."""
        z = self._gaussian(n, dtype)
        return z * z.dtype.type(std) + z.dtype.type(mean)

    def log_normal(self, n: int, dtype: np.dtype, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
        """n samples whose logarithms have a normal distribution."""
        return np.exp(self.normal(n, dtype, mean, std))

    def exponential(self, n: int, dtype: np.dtype, rate: float = 1.0) -> np.ndarray:
        """n samples of the exponential distribution of a rate."""
        unit = self._unit(n, dtype)
        kind = unit.dtype.type
        half = np.finfo(unit.dtype).eps / 2
        logarithm = np.where(unit >= kind(1 - half), kind(-half), np.log(unit))
        return kind(-1 / rate) * logarithm

    def cauchy(self, n: int, dtype: np.dtype, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
        """n samples of a Cauchy distribution."""
        unit = self._unit(n, dtype)
        kind, eps = unit.dtype.type, np.finfo(unit.dtype).eps
        inside = np.clip(unit, eps, kind(1) - eps)
        return kind(median) + kind(sigma) * np.tan(kind(np.pi) * (inside - kind(0.5)))

    def geometric(self, n: int, p: float, dtype: np.dtype) -> np.ndarray:
        """n samples of a geometric distribution."""
        unit = self._unit(n, dtype)
        return np.ceil(np.log(unit) / np.log1p(unit.dtype.type(-p)))

    def bernoulli(self, n: int, p: float, dtype: np.dtype) -> np.ndarray:
        """n samples, 1 with probability p."""
        return self._unit(n, dtype) <= p if p == 1 else self._unit(n, dtype) < p

    def bernoulli_each(self, p: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """A sample for each probability: 1 if a uniform over (0, 1] is not above it."""
        return self._unit(p.size, _F32).reshape(p.shape) <= p

    def randint(self, n: int, low: int, high: int, dtype: np.dtype) -> np.ndarray:
        """n integers of the uniform distribution over [low, high)."""
        return self.random(n, dtype, low, high)

    def random(self, n: int, dtype: np.dtype, low: int | None = None, high: int | None = None) -> np.ndarray:
        """n integers over [low, high), or over all that a dtype represents where both are None."""
        wide = dtype.kind not in "iub" or dtype.itemsize == 8
        if high is None and low is None:
            if dtype.kind == "b":
                return self._spread(n, 4, list) & np.uint64(1)
            if dtype.kind in "iu":
                top = np.iinfo(dtype).max
                values = self._spread(n, 2, _longs) if dtype.itemsize == 8 else self._spread(n, 4, list)
                return values % np.uint64(top + 1)
            digits = {2: 11, 4: 24, 8: 53}[dtype.itemsize] if dtype.kind == "f" else 8
            values = self._spread(n, 2, _longs) if digits == 53 else self._spread(n, 4, list)
            return values % np.uint64(2 ** digits + 1)
        base = low or 0
        if high is None:
            size = (2 ** 63 if dtype.kind not in "iu" else int(np.iinfo(dtype).max) + 1) - base
        else:
            size = high - base
        values = self._spread(n, 2, _longs) if wide and size >= 1 << 28 else self._spread(n, 4, list)
        remainder = values if size >= 2 ** 64 else values % np.uint64(size)
        return remainder.astype(np.int64) + np.int64(base)

    def randperm(self, n: int, dtype: np.dtype) -> np.ndarray:
        """The integers from 0 to n - 1 in random order: sorted by random keys; those of equal keys are shuffled."""
        if not n:
            return np.arange(0)
        limit = np.log(0.9) * 12
        bits = min(64, int(np.ceil(np.log2(n - (6.0 * n * n + 1) / limit))))
        if bits <= 32:
            drawn = self.random(n, np.dtype(np.int32), -2 ** 31, 2 ** 31 - 1)
            keys = (drawn & np.int64(2 ** bits - 1)).astype(np.uint64)
        else:
            keys = self.random(n, np.dtype(np.int64), -2 ** 63, 2 ** 63 - 1).view(np.uint64) & np.uint64(2 ** bits - 1)
        order = np.argsort(keys, kind="stable")
        self._shuffle_equal(keys[order], order)
        return order

    def _shuffle_equal(self, keys: np.ndarray, order: np.ndarray) -> None:
        """Shuffle each run of equal keys: the thread at its beginning draws a word for each place."""
        offset = self.advance(len(keys))
        same = keys[1:] == keys[:-1]
        starts = np.flatnonzero(same & np.concatenate(([True], ~same[:-1]))) if len(keys) > 1 else ()
        for start in starts:
            end = start + 1
            while end < len(keys) and keys[end] == keys[start]:
                end += 1
            drawn = [int(word) for call in range((end - start) // 4 + 1) for word in self.words(start, offset, call)]
            for k, i in enumerate(range(end - start - 1, 0, -1)):
                other = drawn[k] % (i + 1)
                order[[start + i, start + other]] = order[[start + other, start + i]]

    def multinomial(self, weights: np.ndarray, n: int, replacement: bool = False) -> np.ndarray:
        """Indices drawn with the weights of rows, (k) or (m, k)."""
        rows = weights.reshape(-1, weights.shape[-1])
        if not replacement or n == 1:
            q = rows / self.exponential(rows.size, rows.dtype).reshape(rows.shape).astype(rows.dtype)
            order = np.argsort(-q, axis=-1, kind="stable")[:, :n]
        else:
            cumulative = np.cumsum(rows / rows.sum(-1, keepdims=True), -1)
            offset = self.advance(-(-(rows.shape[0] * n) // 4) * _PER_CALL)
            threads = -(-n // _BLOCK) * _BLOCK
            order = np.empty((rows.shape[0], n), np.int64)
            for i, row in enumerate(cumulative):
                unit = _singles(self.words(np.arange(n, dtype=np.uint64) + np.uint64(i * threads), offset, 0))[0]
                order[i] = np.minimum(np.searchsorted(row, unit), rows.shape[1] - 1)
        return order.reshape(*weights.shape[:-1], n)

    def dropout(self, n: int, keep: float, vector: int) -> np.ndarray:
        """Which of n elements dropout keeps.

        Args:
            keep: the probability to keep one.
            vector: the elements that a thread loads at once: 4 or more, 2, or 1 where memory is not aligned.
        """
        if vector < 2:
            return self._spread(n, 4, _singles) < np.float32(keep)
        threads = _BLOCK * min(-(-n // (_BLOCK * vector)), self.blocks)
        full = _BLOCK * min(-(-n // _BLOCK), self.blocks)
        offset = self.advance(((n - 1) // (full * _PER_CALL) + 1) * _PER_CALL)
        kept = np.empty(n, np.bool_)
        index = np.arange(threads, dtype=np.uint64)
        state: list[np.ndarray] = []
        call = 0
        for start in range(0, n, threads * vector):
            units: list[np.ndarray] = []
            while len(units) < vector:
                if not state:
                    state = _singles(self.words(index, offset, call))
                    call += 1
                units.append(state.pop(0))
            block = (np.stack(units, -1).reshape(-1) < np.float32(keep))[:n - start]
            kept[start:start + len(block)] = block
        return kept


def _singles(words: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """float32 uniforms over (0, 1], one of each word."""
    return [w.astype(np.uint32).astype(_F32) * _INV32 + _INV32 / np.float32(2) for w in words]


def _hq(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """53 bits of two words, a float64."""
    return (low ^ (high << np.uint64(21))).astype(_F64)


def _doubles(words: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """float64 uniforms over (0, 1], one of each pair of words."""
    return [_hq(words[i], words[i + 1]) * _INV53 + _INV53 / 2 for i in (0, 2)]


def _normal_singles(words: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """float32 normals of pairs of words, by Box and Muller."""
    found = []
    turn = np.float32(2.0 ** -32 * 2 * np.pi)
    for i in (0, 2):
        u = words[i].astype(np.uint32).astype(_F32) * _INV32 + _INV32 / np.float32(2)
        v = words[i + 1].astype(np.uint32).astype(_F32) * turn + turn / np.float32(2)
        radius = np.sqrt(-2 * np.log(u.astype(_F64))).astype(_F32)
        found += [np.sin(v.astype(_F64)).astype(_F32) * radius, np.cos(v.astype(_F64)).astype(_F32) * radius]
    return found


def _normal_doubles(words: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """float64 normals of four words, by Box and Muller."""
    u = _hq(words[0], words[1]) * _INV53 + _INV53 / 2
    v = _hq(words[2], words[3]) * (2 * _INV53) + _INV53
    radius = np.sqrt(-2 * np.log(u))
    return [radius * np.sin(np.pi * v), radius * np.cos(np.pi * v)]


def _longs(words: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """64-bit numbers, one of each pair of words."""
    return [(words[i] << _WORD) | words[i + 1] for i in (0, 2)]


__all__ = ["DEFAULT_SEED", "PhiloxEngine", "philox"]
