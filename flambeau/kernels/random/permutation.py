"""Random permutations: `randperm`, the Fisher-Yates shuffle.

Step i swaps element i with element z = i + r mod (n − i), for one random word r. Instead of a loop over n swaps,
the permutation is computed from all z by sorting, which is faster in NumPy.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...dtypes import BFLOAT16
from .conversion import narrow, require
from .engine import Engine

_INT64 = np.dtype(np.int64)
_SMALL = 1000  # below it, a loop over swaps is faster than sorting
_INSIDE_OUT_FROM = 0xFFFF_FFFF // 20  # from this size on, PyTorch uses the inside-out shuffle, with 64 bits per step
_DTYPES = frozenset(map(np.dtype, ("u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"))) | {BFLOAT16}
_INTEGER_LIMIT = {t: (int(np.iinfo(t).max), f"{t.name}_t") for t in map(np.dtype, ("u1", "i1", "i2", "i4"))}
_EXACT_LIMIT = {np.dtype(np.float16): (1 << 11, "Half"), np.dtype(np.float32): (1 << 24, "Float"),
                np.dtype(np.float64): (1 << 53, "Double")}


def randperm(engine: Engine, n: int, dtype: np.dtype = _INT64) -> np.ndarray:
    """The numbers 0 ... n − 1 in a random order.

    Returns:
        shape (n,); the order does not depend on `dtype`.

    Raises:
        RuntimeError: `n` is negative, or `dtype` cannot hold it.
        NotImplementedError: `dtype` has no such kernel.
    """
    dtype = np.dtype(dtype)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    check_dtype(n, dtype)
    require("randperm", dtype, _DTYPES)
    order = _inside_out(engine, n) if n >= _INSIDE_OUT_FROM else _shuffle(engine, n)
    if dtype.itemsize == 2 and dtype.kind != "i":
        return narrow(order.astype(np.float32), dtype)
    return order.astype(dtype, copy=False)


def check_dtype(n: int, dtype: np.dtype) -> None:
    """Check that a dtype holds the numbers below n.

    Raises:
        RuntimeError: it does not.
    """
    if dtype in _INTEGER_LIMIT and n > _INTEGER_LIMIT[dtype][0] + 1:  # the largest number is n - 1
        raise RuntimeError(f"value cannot be converted to type {_INTEGER_LIMIT[dtype][1]} without overflow")
    if dtype in _EXACT_LIMIT and n > _EXACT_LIMIT[dtype][0] + 1:
        limit, name = _EXACT_LIMIT[dtype]
        raise RuntimeError(f"n cannot be greater than {limit + 1} for {name} type.")


def _sizes_left(n: int) -> np.ndarray:
    """How many elements each step of a shuffle of `n` chooses from: n ... 2."""
    return np.arange(n, 1, -1, dtype=np.uint32)


_few_sizes_left = lru_cache(64)(_sizes_left)


def _shuffle(engine: Engine, n: int) -> np.ndarray:
    if n < 2:
        return np.arange(n)
    draws = engine.direct_draws(n)
    if draws is not None:
        return draws.permutation(np.empty(n, np.int64))
    words = engine.draw(n - 1)
    if n <= _SMALL:
        words %= _few_sizes_left(n)
        order = list(range(n))
        for i, step in enumerate(words.tolist()):
            z = i + step
            order[i], order[z] = order[z], order[i]
        return np.array(order, dtype=np.int64)
    words %= _sizes_left(n)
    return _from_swaps(words.astype(np.int64) + np.arange(n - 1), n)


def _from_swaps(z: np.ndarray, n: int) -> np.ndarray:
    """The outcome of swapping i with z[i] >= i for i = 0, 1, ..., n − 2.

    Position i is final after step i: it gets the element at position z[i], which was moved there by the last
    earlier step with the same z, or is z[i] itself. Step k moves away the element `source[k]` that position k had
    then, which is determined by the last step before k with z equal to k. Sorting the pairs (z, i) finds these
    steps; chains in `source` are resolved by pointer doubling.
    """
    shift = np.int64(n.bit_length())
    steps = np.arange(n)
    pairs = np.empty(n, np.int64)
    pairs[:-1] = z << shift
    pairs[-1] = (n - 1) << shift    # the last position: a swap with itself
    pairs |= steps
    pairs.sort()
    target, step = pairs >> shift, pairs & ((np.int64(1) << shift) - np.int64(1))
    follows = target[1:] == target[:-1]

    before = np.full(n, -1)         # the last earlier step with the same z
    before[step[1:][follows]] = step[:-1][follows]

    last = np.append(~follows, True)
    source = steps.copy()             # the last earlier step with z equal to k; k itself if there is none
    source[target[last]] = step[last]
    own = np.flatnonzero((source == steps) & (before >= 0) & (np.append(z, n - 1) == steps))
    source[own] = before[own]
    while True:
        further = source[source]
        if np.array_equal(further, source):
            break
        source = further
    result = np.append(z, n - 1)
    reached = before >= 0
    result[reached] = source[before[reached]]
    return result


def _inside_out(engine: Engine, n: int) -> np.ndarray:
    """The inside-out shuffle: step i moves element z = r mod (i + 1) to position i, and puts i at z."""
    order = np.empty(n, np.int64)
    block = 1 << 16
    for start in range(0, n, block):
        size = min(block, n - start)
        z = engine.draw64(size) % np.arange(start + 1, start + size + 1, dtype=np.uint64)
        for i, at in enumerate(z.tolist(), start):
            order[i] = i
            order[i], order[at] = order[at], i
    return order
