"""Fused multiply-add on arrays, in software: a * b + c with one rounding, for every input.

PyTorch's kernels are compiled with contraction, so `x * (to - from) + from` has one rounding there.
"""

from __future__ import annotations

from math import copysign, frexp, inf, isfinite

import numpy as np

_SPLIT = 2.0**27 + 1
_SAFE_LOW, _SAFE_HIGH = 2.0**-900, 2.0**900
_CHUNK = 1 << 14  # thirty temporaries stay in the cache


def fma32(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """a·b + c of float32 values with one rounding; `a` an array, `b` and `c` float32 numbers.

    In float64 the product is exact and the sum has 53 bits, so that double rounding differs from one rounding
    only where the sum is halfway between two float32 numbers; there the sum is rounded to odd.
    """
    with np.errstate(all="ignore"):
        return _fma32(a, float(np.float32(b)), float(np.float32(c)))


def _fma32(a: np.ndarray, wide_b: float, wide_c: float) -> np.ndarray:
    product = np.multiply(a, wide_b, dtype=np.float64)
    total: np.ndarray = product + wide_c
    if wide_c == 0.0:
        return np.asarray(total, dtype=np.float32)
    middle = (total.view(np.int64) & 0x1FFF_FFFF) == 0x1000_0000
    middle |= np.abs(total) < 2.0**-126
    where = np.flatnonzero(middle)
    if where.size:
        total[where] = _round_to_odd(product[where], wide_c)
    return np.asarray(total, dtype=np.float32)


def fma64(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """a·b + c of float64 values with one rounding; `a` an array, `b` and `c` numbers.

    Boldo and Melquiond: the exact product in two parts, the sum in three, the small ones rounded to odd.
    """
    with np.errstate(all="ignore"):
        if a.size <= _CHUNK:
            return _fma64(a, b, c)
        out = np.empty_like(a)
        for start in range(0, a.size, _CHUNK):
            out[start:start + _CHUNK] = _fma64(a[start:start + _CHUNK], b, c)
        return out


def _fma64(a: np.ndarray, b: float, c: float) -> np.ndarray:
    high = a * b
    if c == 0.0 or _is_power_of_two(b):
        exact = high + c
        far = _out_of_range(high, c) if c else _below(high, a, b)
    else:
        low = _product_error(a, b, high)
        t, t_low = _two_sum(np.full_like(low, c), low)
        v, v_low = _two_sum(high, t)
        exact = v + _round_to_odd(t_low, v_low)
        far = _out_of_range(high, c) | _below(high, a, b)
    for i in np.flatnonzero(far):
        exact[i] = _fma_one(float(a[i]), b, c)
    return exact


def _is_power_of_two(x: float) -> bool:
    return abs(frexp(x)[0]) == 0.5


def _out_of_range(product: np.ndarray, c: float) -> np.ndarray:
    if abs(c) > _SAFE_HIGH or 0.0 < abs(c) < _SAFE_LOW:
        return np.ones(product.shape, bool)
    return np.asarray(~(np.abs(product) < _SAFE_HIGH))


def _below(product: np.ndarray, a: np.ndarray, b: float) -> np.ndarray:
    if b == 0.0:
        return np.zeros(product.shape, bool)
    return np.asarray((np.abs(product) < _SAFE_LOW) & (a != 0.0))


def _fma_one(a: float, b: float, c: float) -> float:
    if not (isfinite(a) and isfinite(b) and isfinite(c)):
        return a * b + c
    from fractions import Fraction

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return a * b + c
    sign = 1.0 if exact > 0 else -1.0
    try:
        return copysign(float(exact), sign)
    except OverflowError:
        return sign * inf


def _two_sum(a: np.ndarray, b: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product_error(a: np.ndarray, b: float, product: np.ndarray) -> np.ndarray:
    """a·b − product, by Veltkamp's splitting and Dekker's product."""
    scaled = a * _SPLIT
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled_b = b * _SPLIT
    b_high = scaled_b - (scaled_b - b)
    b_low = b - b_high
    return np.asarray(a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low))


def _round_to_odd(a: np.ndarray, b: np.ndarray | float) -> np.ndarray:
    """a + b, and where that is inexact, the neighbour with an odd last bit on the true side."""
    total, error = _two_sum(a, b)
    bits = total.view(np.int64)
    even = (error != 0.0) & ((bits & 1) == 0)
    step = np.where((error > 0.0) == (total > 0.0), 1, -1)
    return np.where(even, bits + step, bits).view(np.float64)
