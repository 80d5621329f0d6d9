"""A kernel that advances NumPy's Mersenne Twister in place and returns its 32-bit outputs, or converts them at once."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from ....codegen.random import mersenne_twister, scalar_functions
from ....codegen.random.draws import Draws


@cache
def _has_known_layout() -> bool:
    """Whether NumPy's MT19937 state is the array of words followed by the position."""
    from numpy.random import MT19937

    generator = MT19937(0)
    address = generator.ctypes.state_address
    words = (ctypes.c_uint32 * mersenne_twister.WORDS).from_address(address)
    for count in (5, mersenne_twister.WORDS):
        generator.random_raw(count, output=False)
        state = generator.state["state"]
        if not np.array_equal(words, state["key"]) or _position(address).value != state["pos"]:
            return False
    return True


def _position(address: int) -> Any:
    return ctypes.c_int32.from_address(address + 4 * mersenne_twister.WORDS)


def draw(generator: Any, n: int) -> np.ndarray | None:
    """The next `n` outputs of an MT19937, uint32; None: NumPy has to draw them."""
    if not _has_known_layout():
        return None
    words = np.empty(n, np.uint32)
    address = generator.ctypes.state_address
    position = _position(address)
    position.value = mersenne_twister.draw()(words.ctypes.data, n, address, position.value)
    return words


def direct_draws(generator: Any) -> Draws | None:
    """Functions that draw from the state of an MT19937; None: NumPy has to draw."""
    return Draws(generator.ctypes.state_address) if _has_known_layout() else None


def scalar_function(name: str, x: np.ndarray) -> np.ndarray | None:
    """A function of the C library, by its name, applied to each element of a vector of float64; None: there is none."""
    compute = scalar_functions.function(name, x.size) if x.dtype.char == "d" and x.size else None
    if compute is None:
        return None
    result: np.ndarray = compute(None, np.array(x, order="C").reshape(-1))
    return result


__all__ = ["direct_draws", "draw", "scalar_function"]
