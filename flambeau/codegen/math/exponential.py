"""exp and its kin: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial in r, and 2^n put into the exponent.

Results below the normal range are rounded once: the factor 2^n is applied as two exact powers.
"""

from __future__ import annotations

import math

from ..llvm.vectors import Real, Whole, at_least, at_most, fma, polynomial, power_of_two, rounded, scaled, where

LOG2_E = math.log2(math.e)


def reduced(x: Real) -> tuple[Real, Real, Whole]:
    """(n, r, n as integer): x = n ln 2 + r, for |x| that is within the exponent's range."""
    format_ = x.lanes.format
    shifted = fma(x, LOG2_E, format_.shifter)
    n = shifted - format_.shifter
    r = fma(-n, format_.ln2_high, x)
    return n, r, shifted.bits() - format_.pattern(format_.shifter)


def power_of_e(r: Real) -> Real:
    """e^r for |r| <= ln 2 / 2."""
    return fma(r * r, polynomial(r, "EXP"), r) + 1.0


def exp_parts(x: Real, low: Real | float = 0.0) -> tuple[Real, Whole]:
    """(p, n): e^(x + low) = p 2^n with p about 1, for x within the range and low less than an ulp of x."""
    n, r, whole = reduced(x)
    r = fma(-n, x.lanes.format.ln2_low, r)
    if isinstance(low, Real):
        r = r + low
    return power_of_e(r), whole


def within(x: Real, margin: float = 0.0) -> Real:
    """x held where exp neither loses its infinity nor its zero; NaN stays."""
    format_ = x.lanes.format
    return at_least(at_most(x, format_.exp_high + margin), format_.exp_low - margin)


def exp(x: Real) -> Real:
    """e^x."""
    p, n = exp_parts(within(x))
    return scaled(p, n)


def exp2(x: Real) -> Real:
    """2^x: the fraction that is left is exact."""
    format_ = x.lanes.format
    return exp2_within(at_least(at_most(x, format_.bias + 1.0), -format_.bias - format_.mantissa - 2.0))


def exp2_within(x: Real) -> Real:
    """2^x for x that is held in the exponent's range."""
    n, whole = rounded(x)
    r = x - n
    return scaled(fma(r, polynomial(r, "EXP2"), 1.0), whole)


def expm1_parts(x: Real) -> tuple[Real, Whole]:
    """(p, n): e^x = (1 + p) 2^n, p good to its last bit; x as for exp_parts."""
    low_part = x.lanes.format.ln2_low
    n, r, whole = reduced(x)
    short = fma(-n, low_part, r)
    rest = fma(-n, low_part, r - short)  # what rounding has taken from r
    return fma(short * short, polynomial(short, "EXPM1"), rest) + short, whole


def expm1(x: Real) -> Real:
    """e^x - 1, to all digits near 0."""
    lanes = x.lanes
    held = at_least(at_most(x, lanes.format.exp_high), -lanes.format.mantissa + 0.0)
    p, n = expm1_parts(held)
    half = power_of_two(n - 1)
    y = fma(half, p, half - 0.5) * 2.0
    return where(abs(x) < 2.0 ** -(lanes.format.mantissa + 2), x, y)  # -0 and the subnormal numbers too


def sigmoid(x: Real) -> Real:
    """1 / (1 + e^-x), by e^-|x|, which cannot overflow."""
    z = exp(-abs(x))
    return where(x < 0.0, z, 1.0) / (z + 1.0)


def tanh(x: Real) -> Real:
    """(e^2|x| - 1) / (e^2|x| + 1), the sign put back."""
    ceiling = 20.0 if x.lanes.precision == "single" else 40.0  # where it is 1 to the last bit
    p, n = expm1_parts(at_most(abs(x) * 2.0, ceiling))
    power = power_of_two(n)
    t = fma(power, p, power - 1.0)
    return (t / (t + 2.0)).copysign(x)


def half_exp(x: Real) -> Real:
    """e^|x| / 2: infinite only where the half is."""
    p, n = exp_parts(at_most(abs(x), x.lanes.format.exp_high + 1.0))
    return scaled(p, n - 1)


def sinh(x: Real) -> Real:
    """(e^x - e^-x) / 2; a polynomial up to 1."""
    half = half_exp(x)
    square = x * x
    near = fma(x * square, polynomial(square, "SINH"), x)
    far = (half - 0.25 / half).copysign(x)
    return where(abs(x) < 1.0, near, far)


def cosh(x: Real) -> Real:
    """(e^x + e^-x) / 2."""
    half = half_exp(x)
    return half + 0.25 / half


