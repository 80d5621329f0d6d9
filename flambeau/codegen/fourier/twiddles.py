"""The stages of a transform and their tables of roots of unity ("twiddle factors").

Stockham's algorithm: a stage of radix r takes vectors of length r m, s of them interleaved, to vectors of length m, r s
of them interleaved. The first stage (s = 1) has the lanes of a vector as its radix, so that s is a multiple of the
lanes in all later stages.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

#: radices of the later stages
RADICES = (2, 3, 4, 5, 7, 8)


class Stage(NamedTuple):
    """A stage: its radix, m, s, and where its table begins, in elements."""

    radix: int
    m: int
    s: int
    table: int


def radices(length: int, lanes: int) -> list[int] | None:
    """The radices of the stages, the first of which is `lanes`; None if the length has other factors."""
    if length < 1 or length % lanes:
        return None
    rest, result = length // lanes, []
    for prime in (7, 5, 3):
        while rest % prime == 0:
            result.append(prime)
            rest //= prime
    twos = rest.bit_length() - 1
    if rest != 1 << twos:
        return None
    if twos % 2 and twos >= 3:  # radix 4 needs no more than the registers; 8 saves a stage
        result.append(8)
        twos -= 3
    elif twos % 2:
        result.append(2)
        twos -= 1
    return [lanes, *result, *[4] * (twos // 2)]


def _roots(numerators: np.ndarray, length: int) -> np.ndarray:
    """exp(-2 pi i k / length) for integers k."""
    return np.exp((-2j * np.pi / length) * (numerators % length))


@lru_cache(64)
def tables(length: int, lanes: int, dtype: np.dtype, real: bool) -> tuple[tuple[Stage, ...], int, np.ndarray]:
    """The stages of a complex transform, where the table for real signals begins, and all tables as one array.

    Args:
        length: a length for which `radices` has a result.
        lanes: elements of a vector.
        dtype: float32 or float64.
        real: whether the transform is that of a real signal of twice the length.
    """
    stages, parts, at = [], [], 0
    s, rest = 1, length
    for radix in radices(length, lanes) or ():
        m = rest // radix
        k = np.arange(1, radix)
        if s == 1:  # vectors of successive p
            p = np.arange(-(-m // lanes) * lanes).reshape(-1, 1, lanes)
            roots = _roots(p * k[:, None], rest)
            table = np.stack([roots.real, roots.imag], 2)
        else:
            roots = _roots(np.arange(m)[:, None] * k, rest)
            table = np.stack([roots.real, roots.imag], 2)
        stages.append(Stage(radix, m, s, at))
        parts.append(table.ravel())
        at += table.size
        s, rest = s * radix, m
    real_table = at
    if real:
        roots = _roots(np.arange(length), 2 * length)
        parts += [roots.real, roots.imag]
    return tuple(stages), real_table, np.concatenate(parts).astype(dtype)


__all__ = ["RADICES", "Stage", "radices", "tables"]
