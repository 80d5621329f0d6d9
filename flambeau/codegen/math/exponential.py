"""exp, exp2, expm1, sigmoid, tanh, sinh and cosh.

x = n ln 2 + r with |r| <= ln 2 / 2; e^x = 2^n p(r). Subnormal results are rounded once: the factor 2^n is applied as
two exact powers (`building_blocks.ldexp`).
"""

from __future__ import annotations

import math

from ..llvm.vectors import Integer, Real, clamp_max, clamp_min, where
from .building_blocks import fma, has_scalef, ldexp, polynomial, power_of_two, round_to_integer

LOG2_E = math.log2(math.e)


def reduce_argument(x: Real) -> tuple[Real, Real, Integer]:
    """(n, r, n as Integer) with x = n ln 2 + r to the first part of ln 2, for x in the range of exp."""
    format_ = x.context.format
    shifted = fma(x, LOG2_E, format_.shifter)
    n = shifted - format_.shifter
    r = fma(-n, format_.ln2_high, x)
    return n, r, shifted.bits() - format_.bits_of(format_.shifter)


def power_of_e(r: Real) -> Real:
    """e^r for |r| <= ln 2 / 2."""
    return fma(r * r, polynomial(r, "EXP"), r) + 1.0


def exp_parts(x: Real, low: Real | float = 0.0) -> tuple[Real, Integer]:
    """(p, n) with e^(x + low) = p 2^n and p about 1, for x in the range of exp and low below an ulp of x."""
    n, r, integer = reduce_argument(x)
    r = fma(-n, x.context.format.ln2_low, r)
    if isinstance(low, Real):
        r = r + low
    return power_of_e(r), integer


def exp(x: Real) -> Real:
    """e^x.

    Where it is 0 nothing is scaled: a product that underflows takes 200 cycles on Intel's processors, and a causal mask
    has an underflow in every vector.
    """
    is_zero = x < x.context.format.exp_low
    bounded = clamp_max(x, x.context.format.exp_high)
    if has_scalef(x.context):  # which needs no bound below; the addition that gives p sets it to zero by its mask
        p, n = exp_parts(bounded)
        return ldexp(where(is_zero, 0.0, p), n)
    p, n = exp_parts(where(is_zero, 0.0, bounded))
    return where(is_zero, 0.0, ldexp(p, n))


def exp2(x: Real) -> Real:
    """2^x; its argument reduction is exact."""
    format_ = x.context.format
    is_zero = x < -format_.bias - format_.mantissa - 2.0
    return where(is_zero, 0.0, exp2_in_range(where(is_zero, 0.0, clamp_max(x, format_.bias + 1.0))))


def exp2_in_range(x: Real) -> Real:
    """2^x for x in the exponent's range."""
    n, integer = round_to_integer(x)
    r = x - n
    return ldexp(fma(r, polynomial(r, "EXP2"), 1.0), integer)


def expm1_parts(x: Real) -> tuple[Real, Integer]:
    """(p, n) with e^x = (1 + p) 2^n, p precise to its last bit; x as for `exp_parts`."""
    low_part = x.context.format.ln2_low
    n, r, integer = reduce_argument(x)
    high = fma(-n, low_part, r)
    low = fma(-n, low_part, r - high)  # the rounding error of `high`
    return fma(high * high, polynomial(high, "EXPM1"), low) + high, integer


def expm1(x: Real) -> Real:
    """e^x - 1, with full relative precision near 0."""
    context = x.context
    clamped = clamp_min(clamp_max(x, context.format.exp_high), -context.format.mantissa + 0.0)
    p, n = expm1_parts(clamped)
    half = power_of_two(n - 1)
    y = fma(half, p, half - 0.5) * 2.0
    return where(abs(x) < 2.0 ** -(context.format.mantissa + 2), x, y)  # including -0 and subnormal numbers


def sigmoid(x: Real) -> Real:
    """1 / (1 + e^-x), from e^-|x|, which cannot overflow."""
    z = exp(-abs(x))
    return where(x < 0.0, z, 1.0) / (z + 1.0)


def tanh(x: Real) -> Real:
    """(e^2|x| - 1) / (e^2|x| + 1), with the sign of x."""
    ceiling = 20.0 if x.context.precision == "single" else 40.0  # tanh rounds to 1 from there on
    p, n = expm1_parts(clamp_max(abs(x) * 2.0, ceiling))
    power = power_of_two(n)
    t = fma(power, p, power - 1.0)
    return (t / (t + 2.0)).copysign(x)


def half_exp(x: Real) -> Real:
    """e^|x| / 2, without premature overflow."""
    p, n = exp_parts(clamp_max(abs(x), x.context.format.exp_high + 1.0))
    return ldexp(p, n - 1)


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


