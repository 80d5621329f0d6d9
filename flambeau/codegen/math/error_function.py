"""erf, erfc and erfinv.

Near 0, erf(x) = x + x p(x²). For larger x, erfc(x) = e^(-x²) q((x - K)/(x + K)) / (1 + 2x): one polynomial covers the
half-line, because the scaled function varies little. In float32 the tail of erf is 1 - p(x), without an exponential,
and erfc is computed in double. With AVX-512 erf is one of 16 polynomials, whose coefficients each lane looks up: 20
instructions instead of 33. erfinv is a polynomial in w = -log(1 - x²) near 0 and in √w in the tails.
"""

from __future__ import annotations

import math

from ..llvm.vectors import Real, clamp_max, where
from .building_blocks import floor_to_bits, fma, ldexp, polynomial, table_lookup, two_product
from .double_precision import through_double
from .exponential import exp2_in_range, reduce_argument
from .logarithm import log

LOG2_E = math.log2(math.e)
#: the largest argument of the piecewise polynomials, just below 4; erf is 1 from there on
PIECEWISE_LIMIT = 4 - 2.0**-22


def erf_near(x: Real) -> Real:
    """erf(x) for |x| <= 1."""
    return fma(x, polynomial(x * x, "ERF_CENTRE"), x)


def erf(x: Real) -> Real:
    """2/√π ∫ e^(-t²) from 0 to x."""
    a = abs(x)
    if x.context.has_table_lookup:
        return erf_piecewise(a).copysign(x)
    if x.context.precision == "single":
        far = 1.0 - polynomial(clamp_max(a, 3.95) - 2.5, "ERF_TAIL")  # 1 from there on
        return where(a < 0.975, erf_near(x), far.copysign(x))
    far = 1.0 - erfc_far(a)
    return where(a < 1.0, erf_near(x), far.copysign(x))


def erf_piecewise(a: Real) -> Real:
    """erf(a) for a >= 0, by a polynomial in a - i/4; requires `VectorContext.has_table_lookup`."""
    a = clamp_max(a, PIECEWISE_LIMIT)
    begin = floor_to_bits(a, 2)
    t = a - begin
    index = (begin + 1.5 * 2.0**21).bits()  # the low bits count quarters
    lowest, *higher = [table_lookup(each, index) for each in a.context.table("ERF_PIECES")]
    total = higher.pop()
    while higher:
        total = fma(total, t, higher.pop())
    return fma(total, t, where(a < 0.25, a, lowest))


def erf_from_exp(x: Real, exponential: Real) -> Real:
    """erf(x) from e^(-x²), with an absolute error of about 2^-24 (`scalar.erf_rewrite`)."""
    r = 1.0 / fma(abs(x), 0.45, 1.0)
    far = fma(-exponential, r * polynomial(r, "ERF_FROM_EXP"), 1.0)
    return far.copysign(x)


def erfc_far(a: Real) -> Real:
    """erfc(a) for a >= 0."""
    a = clamp_max(a, 28.0)
    square, low = two_product(a, a)
    n, r, integer = reduce_argument(-square)
    r = fma(-n, a.context.format.ln2_low, r) - low
    t = (a - 4.0) / (a + 4.0)
    scaled = polynomial(t, "ERFC", True) / fma(a, 2.0, 1.0)
    # e^r scaled, without rounding e^r
    return ldexp(fma(fma(r * r, polynomial(r, "EXP"), r), scaled, scaled), integer)


def erfc_widened(x: Real) -> Real:
    """erfc, for a result that is rounded to float32."""
    a = clamp_max(abs(x), 10.5)
    t = (a - 2.0) / (a + 2.0)
    y = exp2_in_range(a * a * -LOG2_E) * polynomial(t, "ERFC_SHORT") / fma(a, 2.0, 1.0)
    return where(x < 0.0, 2.0 - y, y)


def erfc(x: Real) -> Real:
    """1 - erf(x), with full relative precision."""
    if x.context.precision == "single":
        return through_double(erfc_widened, x)
    y = erfc_far(abs(x))
    y = where(x < 0.0, 2.0 - y, y)
    # up to 0.8 the difference is exact
    return where((x < 0.8) & (x > -1.0), 1.0 - erf_near(x), y)


def erfinv(x: Real) -> Real:
    """The y with erf(y) = x; NaN beyond ±1."""
    w = -log(fma(-x, x, 1.0) if x.context.fused else (1.0 - x) * (x + 1.0))
    root = w.sqrt()
    if x.context.precision == "single":
        y = where(w < 5.0, polynomial(w - 2.5, "ERFINV_CENTRE", True), polynomial(root - 3.2, "ERFINV_OUTER", True))
    else:
        outer = where(root < 4.0, polynomial(root - 3.25, "ERFINV_MIDDLE", True),
                      polynomial(root - 5.0, "ERFINV_OUTER", True))
        y = where(w < 6.25, polynomial(w - 3.125, "ERFINV_INNER", True), outer)
    y = y * x
    return where(abs(x).equals(1.0), x * math.inf, y)
