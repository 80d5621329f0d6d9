"""The logarithm of the gamma function and its derivative, by the fits of `kernels.special.gamma`.

Every lane looks its coefficients up by selects among the pieces: one rational function, Stirling's series, and Euler's
reflection for negative arguments. float32 is computed in double and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from llvmlite import ir

from ...kernels.special import gamma as fits
from ..llvm.vectors import Mask, Real, where
from .building_blocks import fma
from .logarithm import log
from .trigonometric import sine, tan

Table = tuple[Sequence[float], Sequence[float]]


def _in_double(formula: Callable[[Real], Real], x: Real) -> Real:
    """The formula in double precision, rounded to the precision of the argument."""
    if x.context.precision == "double":
        return formula(x)
    return formula(x.to(x.context.with_element(ir.DoubleType()))).to(x.context)


def _horner(u: Real, lowest_first: Sequence[Real | float]) -> Real:
    total = u.context.real(lowest_first[-1])
    for c in reversed(lowest_first[:-1]):
        total = fma(total, u, u.context.real(c))
    return total


def _ratio(u: Real, otherwise: Table, *pieces: tuple[Mask, Table]) -> Real:
    """P(u) / Q(u), with the coefficients of the piece whose mask holds."""
    def coefficients(part: int) -> list[Real]:
        found = [u.context.real(c) for c in otherwise[part]]
        for mask, table in pieces:
            found = [where(mask, c, other) for c, other in zip(table[part], found, strict=True)]
        return found

    return _horner(u, coefficients(0)) / _horner(u, coefficients(1))


def _distance(a: Real) -> Real:
    """a minus the nearest integer."""
    return a - a.context.call("rint", a)


def _lgamma(x: Real) -> Real:
    a = abs(x)
    below_half, below_one, below, below_six = a < 0.5, a < 1.0, a < 2.5, a < 6.0
    start = where(below_half, 0.0, where(below_one, 0.5, where(below, 1.0, where(below_six, 2.5, a.context.real(6.0)))))
    ratio = _ratio(a - start, fits.LGAMMA_SIX, (below_six, fits.LGAMMA_TWO), (below, fits.LGAMMA_ONE),
                   (below_one, fits.LGAMMA_HALF), (below_half, fits.LGAMMA_ONE))
    logarithm = log(a)
    # near 0 the fit is of log(gamma(1 + a)), without rounding 1 + a; 0 at 1 and 2, not -0
    fitted = (where(below_half, a, a - 2.0) * (a - 1.0)) * ratio - where(below_half, logarithm, -0.0) + 0.0
    inverse = 1.0 / a
    series = _horner(inverse * inverse, fits.STIRLING) * inverse
    far = (a - 0.5) * (logarithm - 1.0) + (series + (fits.HALF_LOG_TWO_PI - 0.5))
    far = where(a < math.inf, far, math.inf)
    positive = where(a < 12.0, fitted, far)
    size = abs(sine(_distance(a) * math.pi, a.context.real(0.0)))
    reflected = (fits.LOG_PI - log(size * a)) - positive
    reflected = where(a < 2.0**-60, -logarithm, reflected)
    reflected = where(size.equals(0.0) | a.equals(math.inf), math.inf, reflected)
    y = where(x > 0.0, positive, reflected)
    return where(x.isnan(), x, y)


def lgamma(x: Real) -> Real:
    """log |Γ(x)|; infinite at zero and the negative integers; accurate absolutely around its negative zeros."""
    return _in_double(_lgamma, x)


def _digamma(x: Real) -> Real:
    a = abs(x)
    below_one, below_two, below_four = a < 1.0, a < 2.0, a < 4.0
    start = where(below_one, 0.0, where(below_two, 1.0, where(below_four, 2.0, a.context.real(4.0))))
    ratio = _ratio(a - start, fits.DIGAMMA_FOUR, (below_four, fits.DIGAMMA_TWO), (below_two, fits.DIGAMMA_ONE))
    zero, rest = fits.DIGAMMA_ZERO
    root = where(below_one, zero - 1.0, a.context.real(zero))  # below 1 the fit is of digamma(1 + a)
    fitted = ((a - root) - rest) * ratio
    inverse = 1.0 / a
    square = inverse * inverse
    far = log(a) - (inverse * 0.5 + square * _horner(square, fits.DIGAMMA_SERIES))
    value = where(a < 10.0, fitted, far)
    distance = _distance(a)
    cotangent = math.pi / tan(distance * math.pi)
    negative = where(below_one, value, value + inverse) + cotangent
    negative = where(distance.equals(0.0) | a.equals(math.inf), math.nan, negative)
    y = where(x > 0.0, where(below_one, value - inverse, value), negative)
    y = where(x.equals(0.0), a.context.real(-math.inf).copysign(-x), y)
    return where(x.isnan(), x, y)


def digamma(x: Real) -> Real:
    """The derivative of log Γ(x); NaN at the negative integers, infinite at zero with the opposite sign."""
    return _in_double(_digamma, x)
