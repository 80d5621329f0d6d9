"""Many random words at once, NumPy's Mersenne Twister turned by a kernel in its place; and shuffles by such words."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from ....codegen.random import mersenne_twister, permutation


@cache
def _is_as_known() -> bool:
    """Whether NumPy's generator has its words, and behind them its position, where they have been for years."""
    from numpy.random import MT19937

    generator = MT19937(0)
    place = generator.ctypes.state_address
    words = (ctypes.c_uint32 * mersenne_twister.WORDS).from_address(place)
    for count in (5, mersenne_twister.WORDS):
        generator.random_raw(count, output=False)
        inner = generator.state["state"]
        if not np.array_equal(words, inner["key"]) or _position(place).value != inner["pos"]:
            return False
    return True


def _position(place: int) -> Any:
    return ctypes.c_int32.from_address(place + 4 * mersenne_twister.WORDS)


def draw(generator: Any, n: int) -> np.ndarray | None:
    """The next `n` words of an MT19937, uint32; None: NumPy is to draw them."""
    if not _is_as_known():
        return None
    words = np.empty(n, np.uint32)
    place = generator.ctypes.state_address
    position = _position(place)
    position.value = mersenne_twister.draw()(words.ctypes.data, n, place, position.value)
    return words


def shuffled(words: np.ndarray) -> np.ndarray:
    """0 ... n, shuffled by `n` words: place i is swapped with place i + words[i] mod (n + 1 − i)."""
    order = np.arange(words.size + 1)
    permutation.shuffle()(order.ctypes.data, words.ctypes.data, order.size)
    return order


__all__ = ["draw", "shuffled"]
