"""log and its kin: x = 2^k m with √½ <= m < √2, log x = k ln 2 + log(1 + f), f = m - 1 exactly.

float32 takes a polynomial in f; double one in s² with s = f / (2 + f). `log_of_sum` takes its argument as an unrounded
sum u + v: what log1p and the inverse hyperbolic functions need near 1.
"""

from __future__ import annotations

import math
from decimal import Decimal

from ..llvm.vectors import (
    Mask,
    Real,
    Whole,
    fast_two_sum,
    fma,
    nearest_single,
    polynomial,
    power_of_two,
    two_product,
    two_sum,
    where,
    where_whole,
)
from .exponential import exp

# the logarithms of 2 and e to other bases, to forty digits
LOG10_2 = Decimal("0.3010299956639811952137388947244930267682")
LOG10_E = Decimal("0.4342944819032518276511289189166050822944")
LOG2_E = Decimal("1.442695040888963407359924681001892137427")


def parts(x: Real) -> tuple[Real, Whole]:
    """(m, k): x = 2^k m, √½ <= m < √2, for every positive finite x, subnormal ones included."""
    format_ = x.lanes.format
    up = format_.mantissa + 2
    small = x < format_.tiny
    widened = x.lanes.precision == "widened"  # no float32 is a subnormal double
    bits = x.bits() if widened else where(small, x * 2.0**up, x).bits()
    k = (bits - format_.pattern(math.sqrt(0.5))) >> format_.mantissa
    m = (bits - (k << format_.mantissa)).pattern()
    return m, k if widened else k - where_whole(small, up, 0)


def near_one(f: Real) -> tuple[Real, Real]:
    """(h, c): log(1 + f) = f - h + c, h = f²/2 as rounded, c small."""
    h = f * f * 0.5
    if f.lanes.precision == "single":
        return h, f * f * f * polynomial(f, "LOG")
    s = f / (f + 2.0)
    z = s * s
    return h, s * fma(z, polynomial(z, "LOG_RATIO"), h)


def special(x: Real, y: Real) -> Real:
    """The logarithm y of x, put right where x is 0, negative, infinite or NaN."""
    y = where(x < math.inf, y, x)
    y = where(x.equals(0.0), -math.inf, y)
    return where(x < 0.0, math.nan, y)


def log_finite(f: Real, k: Real) -> Real:
    """k ln 2 + log(1 + f)."""
    format_ = f.lanes.format
    h, c = near_one(f)
    return fma(k, format_.ln2_high, f - (h - fma(k, format_.ln2_low, c)))


def log(x: Real) -> Real:
    """The natural logarithm."""
    m, k = parts(x)
    return special(x, log_finite(m - 1.0, k.number()))


def log_of_sum(u: Real, v: Real, doublings: Real | float = 0.0) -> Real:
    """log((u + v) 2^doublings) for |v| <= ulp(u) of a positive finite u; no special values."""
    m, k = parts(u)
    # beyond 2^60 what v adds is nothing; 2^-k would be no normal number
    f = (m - 1.0) + v * power_of_two(where_whole(k > 60, -60, (k ^ -1) + 1))
    return log_finite(f, k.number() + doublings)


def log1p(x: Real) -> Real:
    """log(1 + x), to all digits near 0."""
    u, v = two_sum(x.lanes.real(1.0), x)
    y = log_of_sum(u, v)
    y = where(x < math.inf, y, x)
    y = where(x.equals(-1.0), -math.inf, y)
    y = where(x < -1.0, math.nan, y)
    return where(abs(x) < 2.0 ** -(x.lanes.format.mantissa + 2), x, y)


def log_to_base(x: Real, e: Decimal, two: Decimal | None) -> Real:
    """log x times log_b e, the product to more than working precision; two = log_b 2, None for 1."""
    lanes = x.lanes
    m, whole = parts(x)
    k = whole.number()
    f = m - 1.0
    h, c = near_one(f)
    high, low = fast_two_sum(f, -h)
    # h itself was rounded; its error is of the size of c's last bits and is left
    low = low + c
    high, low = fast_two_sum(high, low)
    e_high = float(e) if lanes.format.bits == 64 else nearest_single(float(e))
    e_low = float(e - Decimal(e_high))
    p, p_low = two_product(high, e_high)
    p_low = p_low + fma(low, e_high, high * e_low)
    if two is None:
        q, q_low = k, lanes.real(0.0)
    else:
        two_high = _short(two, lanes.format.mantissa - 11)
        q, q_low = k * two_high, k * float(two - Decimal(two_high))
    total, rest = fast_two_sum(q, p)
    rest = where(q.equals(0.0), 0.0, rest)
    return special(x, total + (rest + (p_low + q_low)))


def _short(x: Decimal, bits: int) -> float:
    """x cut to so many bits."""
    mantissa, exponent = math.frexp(float(x))
    return math.ldexp(math.floor(mantissa * 2**bits), exponent - bits)


def log2(x: Real) -> Real:
    """The logarithm to base 2."""
    return log_to_base(x, LOG2_E, None)


def log10(x: Real) -> Real:
    """The logarithm to base 10."""
    return log_to_base(x, LOG10_E, LOG10_2)


def softplus(x: Real) -> Real:
    """log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)."""
    return where(x < 0.0, 0.0, x) + log1p(exp(-abs(x)))


def log_sigmoid(x: Real) -> Real:
    """-log(1 + e^-x)."""
    return where(x < 0.0, x, 0.0) - log1p(exp(-abs(x)))


def asinh(x: Real) -> Real:
    """log(a + √(a² + 1)), a = |x|, its argument kept as an unrounded sum."""
    lanes = x.lanes
    a = abs(x)
    huge = a > 2.0 ** (lanes.format.mantissa + 5)
    b = where(huge, 1.0, a)
    square, square_low = two_product(b, b)
    t, t_low = two_sum(square, lanes.real(1.0))
    y = log_of_roots(b, t, t_low + square_low, a, huge)
    y = where(a < math.inf, y, a)
    return where(a < 2.0 ** -(lanes.format.mantissa // 2 + 2), a, y).copysign(x)


def acosh(x: Real) -> Real:
    """log(x + √(x² - 1)) for x >= 1."""
    lanes = x.lanes
    huge = x > 2.0 ** (lanes.format.mantissa + 5)
    b = where(huge, 2.0, x)
    square, square_low = two_product(b, b)
    t, t_low = two_sum(square, lanes.real(-1.0))
    t, t_low = fast_two_sum(t, t_low + square_low)
    y = log_of_roots(b, t, t_low, x, huge)
    y = where(x < math.inf, y, x)
    y = where(x.equals(1.0), 0.0, y)
    return where(x < 1.0, math.nan, y)


def log_of_roots(b: Real, t: Real, t_low: Real, a: Real, huge: Mask) -> Real:
    """log(b + √(t + t_low)); where huge, log(2 a)."""
    root = t.sqrt()
    square, square_low = two_product(root, root)
    root_low = ((t - square) - square_low + t_low) / (root + root)
    u, v = two_sum(b, root)
    u, v = fast_two_sum(u, v + root_low)
    return log_of_sum(where(huge, a, u), where(huge, 0.0, v), where(huge, 1.0, 0.0))


def atanh(x: Real) -> Real:
    """½ log((1 + a) / (1 - a)) = ½ log(1 + 2a / (1 - a)), a = |x|."""
    lanes = x.lanes
    a = abs(x)
    twice = a + a
    below, below_low = fast_two_sum(lanes.real(1.0), -a)
    q = twice / below
    product, product_low = two_product(q, below)
    q_low = ((twice - product) - product_low - q * below_low) / below
    u, v = two_sum(lanes.real(1.0), q)
    y = log_of_sum(u, v + q_low) * 0.5
    y = where(a < 1.0, y, where(a.equals(1.0), math.inf, math.nan))
    return where(a < 2.0 ** -(lanes.format.mantissa // 2 + 2), a, y).copysign(x)
