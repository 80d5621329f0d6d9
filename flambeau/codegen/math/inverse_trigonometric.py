"""asin, acos, atan and atan2: odd polynomials near 0, and the identities that bring every argument there."""

from __future__ import annotations

import math

from ..llvm.vectors import DOUBLE, SINGLE, Mask, Real, fma, polynomial, where

# π/2 in two pieces: the second is what the first has lost to rounding
HALF_PI = {
    SINGLE.name: (float.fromhex("0x1.921fb6p+0"), float.fromhex("-0x1.777a5cp-25")),
    DOUBLE.name: (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54")),
}


def arcsine_tail(x: Real, square: Real) -> Real:
    """asin(x) - x for |x| <= ½."""
    return x * square * polynomial(square, "ASIN")


def folded(x: Real) -> tuple[Mask, Real, Real]:
    """(far, s, z): s = √z and z = (1 - |x|)/2 where |x| > ½; s = |x|, z = x² elsewhere."""
    a = abs(x)
    far = a > 0.5
    half = fma(a, -0.5, 0.5)
    return far, where(far, half.sqrt(), a), where(far, half, a * a)


def asin(x: Real) -> Real:
    """π/2 - 2 asin √((1 - |x|)/2) beyond ½."""
    high, low = HALF_PI[x.lanes.format.name]
    far, s, z = folded(x)
    tail = arcsine_tail(s, z)
    return where(far, high - (2.0 * s + (2.0 * tail - low)), s + tail).copysign(x)


def acos(x: Real) -> Real:
    """π/2 - asin x near 0, 2 asin √((1 - |x|)/2), or that from π, beyond ½."""
    high, low = HALF_PI[x.lanes.format.name]
    far, s, z = folded(x)
    tail = arcsine_tail(s, z)
    twice = 2.0 * (s + tail)
    behind = 2.0 * high - (2.0 * s + (2.0 * tail - 2.0 * low))
    signed, signed_tail = s.copysign(x), tail.copysign(x)
    near = high - (signed + (signed_tail - low))
    return where(far, where(x < 0.0, behind, twice), near)


def arctangent_tail(t: Real) -> Real:
    """atan(t) - t for |t| <= 1."""
    square = t * t
    return t * square * polynomial(square, "ATAN")


def atan(x: Real) -> Real:
    """π/2 - atan(1/|x|) beyond 1."""
    high, low = HALF_PI[x.lanes.format.name]
    a = abs(x)
    steep = a > 1.0
    t = where(steep, 1.0 / a, a)
    tail = arctangent_tail(t)
    return where(steep, high - (t + (tail - low)), t + tail).copysign(x)


def atan2(y: Real, x: Real) -> Real:
    """The angle of the point (x, y), in its quadrant, signed zeros and infinities as in C."""
    high, low = HALF_PI[x.lanes.format.name]
    a, b = abs(y), abs(x)
    steep = a > b
    short, long = where(steep, b, a), where(steep, a, b)
    t = short / long
    t = where(long.equals(0.0), 0.0, t)
    t = where(short.equals(math.inf), 1.0, t)
    tail = arctangent_tail(t)
    # each quadrant's sum is written out: taking one angle off another would round twice
    before = where(steep, high - (t + (tail - low)), t + tail)
    behind = where(steep, high + (t + (tail + low)), 2.0 * high - (t + (tail - 2.0 * low)))
    angle = where(x.signbit(), behind, before).copysign(y)
    return where(x.isnan() | y.isnan(), math.nan, angle)
