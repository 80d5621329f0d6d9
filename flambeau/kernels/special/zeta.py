"""Hurwitz's zeta function, and the polygamma functions, which are its values at the integers.

``zeta(s, q) = sum of (q + k)^-s``: ten terms, then Euler and Maclaurin's series for the rest. For
negative q and integer s the terms below zero are a difference of two zetas at positive places.
"""

from __future__ import annotations

from math import factorial, pi

import numpy as np

from .approximation import Array, blockwise, piecewise

TERMS = 10

# B(2k) / (2k)!, k = 1, 2, ...
EULER_MACLAURIN = tuple(
    numerator / denominator / factorial(2 * k)
    for k, (numerator, denominator) in enumerate(
        ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798),
         (-174611, 330), (854513, 138), (-236364091, 2730)), 1))


def _hurwitz(s: Array, q: Array) -> Array:
    """zeta(s, q) for s > 1 and q > 0."""
    w = q + TERMS
    inverse = 1 / w
    term = s * inverse * inverse
    correction = np.zeros_like(w)
    for k, c in enumerate(EULER_MACLAURIN):
        correction += c * term
        term = term * ((s + (2 * k + 1)) * inverse) * ((s + (2 * k + 2)) * inverse)
    power = w ** (1 - s)
    with_tail = power * (correction + 0.5 * inverse + 1 / (s - 1))
    total = np.where(power == 0, 0.0, with_tail)
    for k in range(TERMS - 1, -1, -1):
        total += (q + k) ** -s
    return total


def _hurwitz_any(s: Array, q: Array) -> Array:
    """zeta(s, q) for integer s > 1 and q of either sign, not an integer below 1."""
    positive = q > 0
    above = np.where(positive, q, np.ceil(q) - q)
    above = np.where(above == 0, 1.0, above)
    total = _hurwitz(s, above)
    if not positive.all():
        negative = ~positive
        s_, q_ = s[negative], q[negative]
        last = np.ceil(q_) - q_  # how far below zero the last negative term's base is
        sign = np.where(s_ % 2 == 0, 1.0, -1.0)
        below = _hurwitz(s_, last) - _hurwitz(s_, 1 - q_)
        total[negative] = _hurwitz(s_, 1 - last) + sign * below
    return total


@blockwise
def zeta(s: Array, q: Array) -> Array:
    """Hurwitz's zeta function; NaN for s < 1, infinite at s = 1 and where a term's base is zero."""
    negative = q <= 0
    integer = q == np.floor(q)
    pole = (s == 1) | (s > 1) & negative & integer
    wrong = np.isnan(s) | np.isnan(q) | (s < 1) | (s > 1) & negative & ~integer & (s != np.floor(s))
    infinite_order = np.isinf(s) & (s > 0) & ~pole
    plain = ~(pole | wrong | infinite_order | np.isinf(q))
    out = np.full_like(s, np.nan)
    out[pole] = np.inf
    out[wrong] = np.nan
    if infinite_order.any():
        base = np.where(negative & ~integer, 0.5, q)
        out = np.where(infinite_order & (base == 1), 1.0, np.where(infinite_order & (base < 1), np.inf, out))
    if plain.any():
        out[plain] = _hurwitz_any(s[plain], q[plain])
    return out


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, n >= 1: ``(-1)^(n+1) n! zeta(n + 1, x)``."""
    if n == 1:
        return trigamma(x)
    return _scaled_zeta(x, np.asarray(n + 1.0), np.asarray(polygamma_scale(n)))


def polygamma_scale(n: int) -> float:
    """``(-1)^(n+1) n!``."""
    return (float(factorial(n)) if n <= 170 else np.inf) * (1.0 if n % 2 else -1.0)


@blockwise
def _scaled_zeta(x: Array, s: Array, scale: Array) -> Array:
    return scale * zeta(s, x)


@blockwise
def trigamma(x: Array) -> Array:
    """The second logarithmic derivative of gamma; infinite at zero and the negative integers."""

    def reflected(x: Array) -> Array:
        sine = np.sin(pi * (x - np.round(x)))
        return (pi / sine) ** 2 - _hurwitz(np.full_like(x, 2.0), 1 - x)

    return piecewise(x, (x > 0, lambda x: _hurwitz(np.full_like(x, 2.0), x)),
                     (x == -np.inf, lambda x: x * np.nan),
                     ((x <= 0) & (x > -np.inf), reflected))
