"""log, log2, log10, log1p, softplus and the inverse hyperbolic functions.

x = 2^k m with √½ <= m < √2, log x = k ln 2 + log(1 + f) with f = m - 1 exact. float32 uses a polynomial in f, double
one in s² with s = f / (2 + f). `log_of_sum` takes an unrounded sum u + v, which log1p and the inverse hyperbolic
functions need near 1.
"""

from __future__ import annotations

import math
from decimal import Decimal

from ..llvm.vectors import Integer, Mask, Real, to_float32, where, where_integer
from .building_blocks import fast_two_sum, fma, polynomial, power_of_two, two_product, two_sum
from .exponential import exp

# logarithms to forty digits
LOG10_2 = Decimal("0.3010299956639811952137388947244930267682")
LOG10_E = Decimal("0.4342944819032518276511289189166050822944")
LOG2_E = Decimal("1.442695040888963407359924681001892137427")


def split_exponent(x: Real) -> tuple[Real, Integer]:
    """(m, k) with x = 2^k m and √½ <= m < √2, for positive finite x, subnormal or not."""
    format_ = x.context.format
    up = format_.mantissa + 2
    small = x < format_.tiny
    widened = x.context.precision == "widened"  # no float32 is a subnormal double
    bits = x.bits() if widened else where(small, x * 2.0**up, x).bits()
    k = (bits - format_.bits_of(math.sqrt(0.5))) >> format_.mantissa
    m = (bits - (k << format_.mantissa)).as_real()
    return m, k if widened else k - where_integer(small, up, 0)


def near_one(f: Real) -> tuple[Real, Real]:
    """(h, c) with log(1 + f) = f - h + c, h = f²/2 rounded, c small."""
    h = f * f * 0.5
    if f.context.precision == "single":
        return h, f * f * f * polynomial(f, "LOG")
    s = f / (f + 2.0)
    z = s * s
    return h, s * fma(z, polynomial(z, "LOG_RATIO"), h)


def with_special_values(x: Real, y: Real) -> Real:
    """The logarithm y of x, corrected for zero, negative, infinite and NaN arguments."""
    y = where(x < math.inf, y, x)
    y = where(x.equals(0.0), -math.inf, y)
    return where(x < 0.0, math.nan, y)


def log_finite(f: Real, k: Real) -> Real:
    """k ln 2 + log(1 + f)."""
    format_ = f.context.format
    h, c = near_one(f)
    return fma(k, format_.ln2_high, f - (h - fma(k, format_.ln2_low, c)))


def log(x: Real) -> Real:
    """The natural logarithm."""
    m, k = split_exponent(x)
    return with_special_values(x, log_finite(m - 1.0, k.to_real()))


def log_of_sum(u: Real, v: Real, doublings: Real | float = 0.0) -> Real:
    """log((u + v) 2^doublings) for positive finite u and |v| <= ulp(u); no special values."""
    m, k = split_exponent(u)
    # above 2^60 v is negligible, and 2^-k might not be normal
    f = (m - 1.0) + v * power_of_two(where_integer(k > 60, -60, (k ^ -1) + 1))
    return log_finite(f, k.to_real() + doublings)


def log1p(x: Real) -> Real:
    """log(1 + x), with full relative precision near 0."""
    u, v = two_sum(x.context.real(1.0), x)
    y = log_of_sum(u, v)
    y = where(x < math.inf, y, x)
    y = where(x.equals(-1.0), -math.inf, y)
    y = where(x < -1.0, math.nan, y)
    return where(abs(x) < 2.0 ** -(x.context.format.mantissa + 2), x, y)


def log_to_base(x: Real, e: Decimal, two: Decimal | None) -> Real:
    """log x times log_b e, in extended precision; `two` is log_b 2, None if that is 1."""
    context = x.context
    m, exponent = split_exponent(x)
    k = exponent.to_real()
    f = m - 1.0
    h, c = near_one(f)
    high, low = fast_two_sum(f, -h)
    # the rounding error of h is about an ulp of c, and is ignored
    low = low + c
    high, low = fast_two_sum(high, low)
    e_high = float(e) if context.format.bits == 64 else to_float32(float(e))
    e_low = float(e - Decimal(e_high))
    p, p_low = two_product(high, e_high)
    p_low = p_low + fma(low, e_high, high * e_low)
    if two is None:
        q, q_low = k, context.real(0.0)
    else:
        two_high = _truncate(two, context.format.mantissa - 11)
        q, q_low = k * two_high, k * float(two - Decimal(two_high))
    total, rest = fast_two_sum(q, p)
    rest = where(q.equals(0.0), 0.0, rest)
    return with_special_values(x, total + (rest + (p_low + q_low)))


def _truncate(x: Decimal, bits: int) -> float:
    """x truncated to a number of bits."""
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
    """log(a + √(a² + 1)), a = |x|, from an unrounded sum."""
    context = x.context
    a = abs(x)
    huge = a > 2.0 ** (context.format.mantissa + 5)
    b = where(huge, 1.0, a)
    square, square_low = two_product(b, b)
    t, t_low = two_sum(square, context.real(1.0))
    y = log_of_root(b, t, t_low + square_low, a, huge)
    y = where(a < math.inf, y, a)
    return where(a < 2.0 ** -(context.format.mantissa // 2 + 2), a, y).copysign(x)


def acosh(x: Real) -> Real:
    """log(x + √(x² - 1)) for x >= 1."""
    context = x.context
    huge = x > 2.0 ** (context.format.mantissa + 5)
    b = where(huge, 2.0, x)
    square, square_low = two_product(b, b)
    t, t_low = two_sum(square, context.real(-1.0))
    t, t_low = fast_two_sum(t, t_low + square_low)
    y = log_of_root(b, t, t_low, x, huge)
    y = where(x < math.inf, y, x)
    y = where(x.equals(1.0), 0.0, y)
    return where(x < 1.0, math.nan, y)


def log_of_root(b: Real, t: Real, t_low: Real, a: Real, huge: Mask) -> Real:
    """log(b + √(t + t_low)); log(2 a) where huge."""
    root = t.sqrt()
    square, square_low = two_product(root, root)
    root_low = ((t - square) - square_low + t_low) / (root + root)
    u, v = two_sum(b, root)
    u, v = fast_two_sum(u, v + root_low)
    return log_of_sum(where(huge, a, u), where(huge, 0.0, v), where(huge, 1.0, 0.0))


def atanh(x: Real) -> Real:
    """½ log((1 + a) / (1 - a)) = ½ log(1 + 2a / (1 - a)), a = |x|."""
    context = x.context
    a = abs(x)
    twice = a + a
    below, below_low = fast_two_sum(context.real(1.0), -a)
    q = twice / below
    product, product_low = two_product(q, below)
    q_low = ((twice - product) - product_low - q * below_low) / below
    u, v = two_sum(context.real(1.0), q)
    y = log_of_sum(u, v + q_low) * 0.5
    y = where(a < 1.0, y, where(a.equals(1.0), math.inf, math.nan))
    return where(a < 2.0 ** -(context.format.mantissa // 2 + 2), a, y).copysign(x)
