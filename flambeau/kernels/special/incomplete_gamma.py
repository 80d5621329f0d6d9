"""The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x).

Small arguments by power series, large x by the continued fraction (Abramowitz and Stegun, 6.5.29, 6.5.31),
and large a near x by Temme's uniform expansion (Digital Library of Mathematical Functions, 8.12), in which
both are an error function and a correction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .approximation import Array, Coefficients, blockwise, polynomial
from .error import erfc
from .gamma import STIRLING, lgamma_next, lgamma_positive

EPSILON = 2.0**-53
UNIFORM_FROM = 40.0
UNIFORM_WITHIN = 0.3
UNIFORM_ORDERS, UNIFORM_TERMS = 9, 22


@blockwise
def gammainc(a: Array, x: Array) -> Array:
    """P(a, x): the integral of ``t^(a-1) exp(-t)`` from 0 to x, over gamma(a)."""
    return regularised(a, x, 0)


@blockwise
def gammaincc(a: Array, x: Array) -> Array:
    """Q(a, x): the integral of ``t^(a-1) exp(-t)`` from x on, over gamma(a)."""
    return regularised(a, x, 1)


def regularised(a: Array, x: Array, upper: int) -> Array:
    """P(a, x), or Q(a, x) if `upper`, of a block of float64."""
    out = np.full_like(a, np.nan)
    for where, value in (((a == 0) & (x > 0), 1.0), ((a > 0) & (x == 0), 0.0),
                         ((a == np.inf) & (x >= 0) & (x < np.inf), 0.0),
                         ((a >= 0) & (a < np.inf) & (x == np.inf), 1.0)):
        out[where] = 1 - value if upper else value
    inside = (a > 0) & (x > 0) & (a < np.inf) & (x < np.inf)
    uniform = inside & (a >= UNIFORM_FROM) & (np.abs(x - a) < UNIFORM_WITHIN * a)
    rest = inside & ~uniform
    fraction = rest & (x > 1.1) & (x >= a)
    # of the rest, where Q cannot be computed accurately as 1 - P
    complement = rest & (x <= 1.1) & np.where(x <= 0.5, -0.4 / np.log(x) >= a, 1.1 * x >= a)
    series = rest & ~fraction & ~complement
    if uniform.any():
        out[uniform] = _uniform(a[uniform], x[uniform], upper)
    for where, function, gives_upper in ((fraction, _continued_fraction, 1), (complement, _complement_series, 1),
                                         (series, _series, 0)):
        if where.any():
            part = function(a[where], x[where])
            out[where] = part if gives_upper == upper else 1 - part
    return out


def _deviation(a: Array, x: Array) -> Array:
    """``m - log(1 + m)`` for m = (x - a)/a, without cancellation."""
    m = (x - a) / a
    series: Coefficients = tuple((-1.0) ** k / k for k in range(2, 22))
    small = np.abs(m) < 0.1
    return np.where(small, m * m * polynomial(np.where(small, m, 0.0), series), m - np.log(x / a))


def _density(a: Array, x: Array) -> Array:
    """``x^a exp(-x) / gamma(a + 1)``."""
    small = a < 12
    bounded = np.where(small, a, 1.0)
    direct = np.exp(bounded * np.log(x) - x - np.where(bounded < 0.5, lgamma_next(np.minimum(bounded, 0.5)),
                                                       lgamma_positive(bounded + 1)))
    large = np.where(small, 12.0, a)
    inverse = 1 / large
    correction = np.exp(-inverse * polynomial(inverse * inverse, STIRLING))
    scaled = np.exp(-large * _deviation(large, x)) * correction / np.sqrt(2 * np.pi * large)
    return np.where(small, direct, scaled)


def _until_converged(step: Callable[[int, list[Array]], Array], state: list[Array], result: int) -> Array:
    """Iterate `step`, which updates the state in place and returns the converged elements; these are dropped."""
    first: Any = state[0]
    if not isinstance(first, np.ndarray):  # a kernel of a GPU loops for itself
        return first.until_converged(step, state, result)
    out = np.empty_like(state[result])
    active = np.arange(out.size)
    n = 0
    while active.size:
        n += 1
        converged = step(n, state)
        if converged.any():
            out[active[converged]] = state[result][converged]
            active = active[~converged]
            state[:] = [array[~converged] for array in state]
    return out


def _series(a: Array, x: Array) -> Array:
    """P: ``density · (1 + x/(a+1) + x²/((a+1)(a+2)) + ...)``."""

    def step(n: int, state: list[Array]) -> Array:
        a, x, term, total = state
        term *= x / (a + n)
        total += term
        return ~(term > EPSILON * total)

    ones = np.ones_like(a)
    return _density(a, x) * _until_converged(step, [a.copy(), x.copy(), ones, ones.copy()], 3)


def _complement_series(a: Array, x: Array) -> Array:
    """Q for small a and x, as ``1 - x^a/gamma(a + 1)`` less the series of the rest of P."""

    def step(n: int, state: list[Array]) -> Array:
        a, x, term, total = state
        term *= -x / n
        total += term / (a + n)
        return ~(np.abs(term) > EPSILON * np.abs(total))

    total = _until_converged(step, [a.copy(), x.copy(), np.ones_like(a), np.zeros_like(a)], 3)
    exponent = a * np.log(x) - np.where(a < 0.5, lgamma_next(np.minimum(a, 0.5)), lgamma_positive(a + 1))
    return -np.expm1(exponent) - a * np.exp(exponent) * total


def _continued_fraction(a: Array, x: Array) -> Array:
    """Q by Lentz's evaluation of ``1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...)))``."""

    def step(n: int, state: list[Array]) -> Array:
        a, b, c, d, total = state
        numerator = n * (a - n)
        b += 2
        np.divide(1.0, b + numerator * d, out=d)
        c[...] = b + numerator / c
        factor = c * d
        total *= factor
        return ~(np.abs(factor - 1) > 2 * EPSILON)

    b = x + 1 - a
    state = [a.copy(), b, np.full_like(a, np.inf), 1 / b, 1 / b]
    return a * _density(a, x) * _until_converged(step, state, 4)


def _uniform(a: Array, x: Array, upper: int) -> Array:
    eta = np.copysign(np.sqrt(2 * _deviation(a, x)), x - a)
    total = np.zeros_like(a)
    for row in reversed(_uniform_table()):
        total = total / a + polynomial(eta, row)
    tail = np.exp(-0.5 * a * eta * eta) / np.sqrt(2 * np.pi * a) * total
    sign = 1.0 if upper else -1.0
    return 0.5 * erfc(sign * eta * np.sqrt(0.5 * a)) + sign * tail


@cache
def _uniform_table() -> tuple[Coefficients, ...]:
    """Taylor coefficients in eta of the expansion's orders, exactly, by DLMF 8.12.12 and 8.12.13."""
    from fractions import Fraction  # imports decimal, which nothing else needs

    count = UNIFORM_TERMS + 2 * UNIFORM_ORDERS + 3
    alpha = [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(1, 36)]
    for n in range(4, count + 1):
        inner = sum((j * alpha[j] * alpha[n + 1 - j] for j in range(2, n)), Fraction(0))
        alpha.append((alpha[n - 1] - inner) / (n + 1))
    # Stirling's coefficients g: gamma*(a) ~ sum of g_k a^-k; g_k = (2k+1)!! alpha_(2k+1)
    stirling, odd = [], Fraction(1)
    for k in range(UNIFORM_ORDERS):
        odd *= 2 * k + 1
        stirling.append(odd * alpha[2 * k + 1])
    first = [Fraction(-1, 3)] + [(n + 2) * alpha[n + 2] for n in range(1, count - 2)]
    rows, previous = [], first
    for k in range(UNIFORM_ORDERS):
        if k:
            previous = [(-1) ** k * stirling[k] * first[n] + (n + 2) * previous[n + 2]
                        for n in range(len(previous) - 2)]
        rows.append(tuple(float(c) for c in previous[:UNIFORM_TERMS]))
    return tuple(rows)
