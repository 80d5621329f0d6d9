"""asin, acos, atan and atan2: odd polynomials near 0, and identities that map all other arguments there."""

from __future__ import annotations

import math

from ..llvm.vectors import DOUBLE, SINGLE, Mask, Real, where
from .building_blocks import fma, polynomial

# π/2 as a sum of two numbers: the second is the rounding error of the first
HALF_PI = {
    SINGLE.name: (float.fromhex("0x1.921fb6p+0"), float.fromhex("-0x1.777a5cp-25")),
    DOUBLE.name: (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54")),
}


def arcsine_tail(x: Real, square: Real) -> Real:
    """asin(x) - x for |x| <= ½."""
    return x * square * polynomial(square, "ASIN")


def half_angle(x: Real) -> tuple[Mask, Real, Real]:
    """(far, s, z): if |x| > ½, far and z = (1 - |x|)/2, s = √z; else z = x², s = |x|."""
    a = abs(x)
    far = a > 0.5
    half = fma(a, -0.5, 0.5)
    return far, where(far, half.sqrt(), a), where(far, half, a * a)


def asin(x: Real) -> Real:
    """π/2 - 2 asin √((1 - |x|)/2) beyond ½."""
    high, low = HALF_PI[x.context.format.name]
    far, s, z = half_angle(x)
    tail = arcsine_tail(s, z)
    return where(far, high - (2.0 * s + (2.0 * tail - low)), s + tail).copysign(x)


def acos(x: Real) -> Real:
    """π/2 - asin x for |x| <= ½; 2 asin √((1 - x)/2) above; π - 2 asin √((1 + x)/2) below."""
    high, low = HALF_PI[x.context.format.name]
    far, s, z = half_angle(x)
    tail = arcsine_tail(s, z)
    twice = 2.0 * (s + tail)
    negative = 2.0 * high - (2.0 * s + (2.0 * tail - 2.0 * low))
    signed, signed_tail = s.copysign(x), tail.copysign(x)
    near = high - (signed + (signed_tail - low))
    return where(far, where(x < 0.0, negative, twice), near)


def arctangent_tail(t: Real) -> Real:
    """atan(t) - t for |t| <= 1."""
    square = t * t
    return t * square * polynomial(square, "ATAN")


def atan(x: Real) -> Real:
    """π/2 - atan(1/|x|) beyond 1."""
    high, low = HALF_PI[x.context.format.name]
    a = abs(x)
    steep = a > 1.0
    t = where(steep, 1.0 / a, a)
    tail = arctangent_tail(t)
    return where(steep, high - (t + (tail - low)), t + tail).copysign(x)


def atan2(y: Real, x: Real) -> Real:
    """The angle of the point (x, y); signed zeros and infinities as in C."""
    high, low = HALF_PI[x.context.format.name]
    a, b = abs(y), abs(x)
    steep = a > b
    smaller, larger = where(steep, b, a), where(steep, a, b)
    t = smaller / larger
    t = where(larger.equals(0.0), 0.0, t)
    t = where(smaller.equals(math.inf), 1.0, t)
    tail = arctangent_tail(t)
    # a sum per quadrant: subtracting rounded angles would round twice
    right = where(steep, high - (t + (tail - low)), t + tail)
    left = where(steep, high + (t + (tail + low)), 2.0 * high - (t + (tail - 2.0 * low)))
    angle = where(x.signbit(), left, right).copysign(y)
    return where(x.isnan() | y.isnan(), math.nan, angle)
