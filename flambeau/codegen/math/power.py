"""pow: e^(y log x), the logarithm to far more digits than the result has, because y multiplies its error.

float32 goes through double. double takes log x as an unrounded sum of two doubles, good to 2^-65:
log((1+s)/(1-s)) = s (2 + 2/3 s² + s⁴ p(s²)), where all but the last term is carried in two pieces.
"""

from __future__ import annotations

import math

from ..llvm.vectors import Real, at_least, at_most, fast_two_sum, fma, polynomial, scaled, two_product, two_sum, where
from .double_precision import through_double
from .exponential import exp2_within, exp_parts
from .logarithm import parts

TWO_THIRDS = (2 / 3, float.fromhex("0x1.5555555555555p-55"))  # the second is what the first has lost
LN2 = (float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45"))


def log_in_two(x: Real) -> tuple[Real, Real]:
    """(h, l): log x = h + l for positive finite doubles."""
    m, whole = parts(x)
    k = whole.number()
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
    b, b_low = fast_two_sum(x.lanes.real(2.0), a)
    b_low = b_low + (a_low + t_low)
    h, low = two_product(s, b)
    low = low + fma(s, b_low, s_low * b)
    total, rest = two_sum(k * LN2[0], h)
    return fast_two_sum(total, rest + fma(k, LN2[1], low))


def log2_widened(x: Real) -> Real:
    """log2 x to 2^-35, relatively."""
    m, whole = parts(x)
    f = m - 1.0
    return fma(f, polynomial(f, "LOG2"), whole.number())


def at_ends(x: Real, logarithm: Real) -> Real:
    """The logarithm of x, put right for 0 and infinity."""
    return where(x.equals(0.0), -math.inf, where(x.equals(math.inf), math.inf, logarithm))


def size_widened(a: Real, y: Real) -> Real:
    """a^y for a >= 0."""
    product = y * at_ends(a, log2_widened(a))
    product = at_least(at_most(product, 200.0), -200.0)
    return exp2_within(product)


def size_double(a: Real, y: Real) -> Real:
    """a^y for a >= 0."""
    h, low = log_in_two(a)
    h = at_ends(a, h)
    p, p_low = two_product(y, h)
    p_low = fma(y, low, p_low)
    format_ = a.lanes.format
    far = abs(p) > 1000.0
    held = at_least(at_most(p, format_.exp_high), format_.exp_low)
    held, rest = fast_two_sum(held, where(far | ~(abs(p) > 2.0**-200), 0.0, p_low))
    q, n = exp_parts(held, rest)
    return scaled(q, n)


def pow(x: Real, y: Real) -> Real:
    """x^y with the special values of C: x^0 = 1^y = 1 even of NaN; a negative x takes whole y."""
    a = abs(x)
    size = through_double(size_widened, a, y) if x.lanes.precision == "single" else size_double(a, y)
    size = where(a.equals(1.0), 1.0, size)  # 1^±inf
    half = y * 0.5
    whole = y.trunc().equals(y)
    even = half.trunc().equals(half)
    negative = x.signbit()
    odd = whole & ~even
    size = where(negative & odd, -size, size)
    size = where((x < 0.0) & ~whole & (a < math.inf), math.nan, size)
    size = where(x.isnan() | y.isnan(), math.nan, size)
    return where(x.equals(1.0) | y.equals(0.0), 1.0, size)
