"""pow: e^(y log x), with the logarithm in extended precision, because y multiplies its error.

float32 is computed in double. In double log x is an unrounded sum of two doubles, with a relative error of 2^-65:
log((1+s)/(1-s)) = s (2 + 2/3 s² + s⁴ p(s²)), where all terms but the last are sums of two doubles.
"""

from __future__ import annotations

import math

from ..llvm.vectors import Real, clamp_max, clamp_min, where
from .building_blocks import fast_two_sum, fma, ldexp, polynomial, two_product, two_sum
from .double_precision import through_double
from .exponential import exp2_in_range, exp_parts
from .logarithm import split_exponent

TWO_THIRDS = (2 / 3, float.fromhex("0x1.5555555555555p-55"))  # the second is the rounding error of the first
LN2 = (float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45"))


def log_double_double(x: Real) -> tuple[Real, Real]:
    """(h, l) with log x = h + l, for positive finite doubles."""
    m, exponent = split_exponent(x)
    k = exponent.to_real()
    f = m - 1.0
    d = m + 1.0
    d_low = m - (d - 1.0)
    inverse = 1.0 / d
    s = f * inverse
    product, product_low = two_product(s, d)
    s_low = ((f - product) - product_low - s * d_low) * inverse
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    t, t_low = two_product(z, TWO_THIRDS[0])
    t_low = t_low + fma(z_low, TWO_THIRDS[0], z * TWO_THIRDS[1])
    a, a_low = fast_two_sum(t, z * z * polynomial(z, "LOG_RATIO_TAIL"))
    b, b_low = fast_two_sum(x.context.real(2.0), a)
    b_low = b_low + (a_low + t_low)
    h, low = two_product(s, b)
    low = low + fma(s, b_low, s_low * b)
    total, rest = two_sum(k * LN2[0], h)
    return fast_two_sum(total, rest + fma(k, LN2[1], low))


def log2_widened(x: Real) -> Real:
    """log2 x with a relative error of 2^-35."""
    m, exponent = split_exponent(x)
    f = m - 1.0
    return fma(f, polynomial(f, "LOG2"), exponent.to_real())


def with_special_values(x: Real, logarithm: Real) -> Real:
    """The logarithm of x, corrected for 0 and infinity."""
    return where(x.equals(0.0), -math.inf, where(x.equals(math.inf), math.inf, logarithm))


def magnitude_widened(a: Real, y: Real) -> Real:
    """a^y for a >= 0."""
    product = y * with_special_values(a, log2_widened(a))
    product = clamp_min(clamp_max(product, 200.0), -200.0)
    return exp2_in_range(product)


def magnitude_double(a: Real, y: Real) -> Real:
    """a^y for a >= 0."""
    h, low = log_double_double(a)
    h = with_special_values(a, h)
    p, p_low = two_product(y, h)
    p_low = fma(y, low, p_low)
    format_ = a.context.format
    far = abs(p) > 1000.0
    clamped = clamp_min(clamp_max(p, format_.exp_high), format_.exp_low)
    clamped, rest = fast_two_sum(clamped, where(far | ~(abs(p) > 2.0**-200), 0.0, p_low))
    q, n = exp_parts(clamped, rest)
    return ldexp(q, n)


def pow(x: Real, y: Real) -> Real:
    """x^y with the special values of C: x^0 = 1^y = 1 even for NaN; a negative x requires an integer y."""
    a = abs(x)
    magnitude = through_double(magnitude_widened, a, y) if x.context.precision == "single" else magnitude_double(a, y)
    magnitude = where(a.equals(1.0), 1.0, magnitude)  # 1^±inf
    half = y * 0.5
    is_integer = y.trunc().equals(y)
    even = half.trunc().equals(half)
    negative = x.signbit()
    odd = is_integer & ~even
    magnitude = where(negative & odd, -magnitude, magnitude)
    magnitude = where((x < 0.0) & ~is_integer & (a < math.inf), math.nan, magnitude)
    magnitude = where(x.isnan() | y.isnan(), math.nan, magnitude)
    return where(x.equals(1.0) | y.equals(0.0), 1.0, magnitude)
