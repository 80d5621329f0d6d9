"""erf, erfc and erfinv.

Near 0, erf(x) = x + x p(x²). Farther out erfc(x) = e^(-x²) q((x - K)/(x + K)) / (1 + 2x): one polynomial covers the
whole half line, because the scaled function hardly changes there. float32 has shorter ways:
erf's tail is 1 - p(x), without an exponential, and erfc is computed in double. Where a vector holds a table (AVX-512)
erf is one of 16 polynomials, whose coefficients each lane picks: two thirds of the instructions.
erfinv is a polynomial of w = -log(1 - x²) near 0 and of √w in the tails.
"""

from __future__ import annotations

import math

from ..llvm.vectors import Real, at_most, floored, fma, looked_up, polynomial, scaled, two_product, where
from .double_precision import through_double
from .exponential import exp2_within, reduced
from .logarithm import log

LOG2_E = math.log2(math.e)
#: the number before 4, where erf has long been 1
LAST = 4 - 2.0**-22


def erf_near(x: Real) -> Real:
    """erf(x) for |x| <= 1."""
    return fma(x, polynomial(x * x, "ERF_CENTRE"), x)


def erf(x: Real) -> Real:
    """2/√π ∫ e^(-t²) from 0 to x."""
    a = abs(x)
    if x.lanes.looks_up:
        return erf_of_pieces(a).copysign(x)
    if x.lanes.precision == "single":
        far = 1.0 - polynomial(at_most(a, 3.95) - 2.5, "ERF_TAIL")  # from there on it is 1
        return where(a < 0.975, erf_near(x), far.copysign(x))
    far = 1.0 - erfc_far(a)
    return where(a < 1.0, erf_near(x), far.copysign(x))


def erf_of_pieces(a: Real) -> Real:
    """erf(a) for a >= 0, by polynomials of a - i/4; where `Lanes.looks_up`."""
    a = at_most(a, LAST)
    begin = floored(a, 2)
    t = a - begin
    index = (begin + 1.5 * 2.0**21).bits()  # whose last bits count quarters
    lowest, *higher = [looked_up(each, index) for each in a.lanes.table("ERF_PIECES")]
    total = higher.pop()
    while higher:
        total = fma(total, t, higher.pop())
    return fma(total, t, where(a < 0.25, a, lowest))


def erf_beside(x: Real, bell: Real) -> Real:
    """erf(x) from e^(-x²), to within 2^-24 of 1: where both are wanted, and 1 is added (`pairs`)."""
    r = 1.0 / fma(abs(x), 0.45, 1.0)
    far = fma(-bell, r * polynomial(r, "ERF_BESIDE"), 1.0)
    return far.copysign(x)


def erfc_far(a: Real) -> Real:
    """erfc(a) for a >= 0."""
    a = at_most(a, 28.0)
    square, low = two_product(a, a)
    n, r, whole = reduced(-square)
    r = fma(-n, a.lanes.format.ln2_low, r) - low
    t = (a - 4.0) / (a + 4.0)
    slow = polynomial(t, "ERFC", True) / fma(a, 2.0, 1.0)
    # e^r slow, without rounding e^r
    return scaled(fma(fma(r * r, polynomial(r, "EXP"), r), slow, slow), whole)


def erfc_widened(x: Real) -> Real:
    """erfc for a result in float32."""
    a = at_most(abs(x), 10.5)
    t = (a - 2.0) / (a + 2.0)
    y = exp2_within(a * a * -LOG2_E) * polynomial(t, "ERFC_SHORT") / fma(a, 2.0, 1.0)
    return where(x < 0.0, 2.0 - y, y)


def erfc(x: Real) -> Real:
    """1 - erf(x), to all digits where that is tiny."""
    if x.lanes.precision == "single":
        return through_double(erfc_widened, x)
    y = erfc_far(abs(x))
    y = where(x < 0.0, 2.0 - y, y)
    # up to 0.8 the difference is exact
    return where((x < 0.8) & (x > -1.0), 1.0 - erf_near(x), y)


def erfinv(x: Real) -> Real:
    """The y with erf(y) = x; NaN beyond ±1."""
    w = -log(fma(-x, x, 1.0) if x.lanes.fused else (1.0 - x) * (x + 1.0))
    root = w.sqrt()
    if x.lanes.precision == "single":
        y = where(w < 5.0, polynomial(w - 2.5, "ERFINV_CENTRE", True), polynomial(root - 3.2, "ERFINV_OUTER", True))
    else:
        outer = where(root < 4.0, polynomial(root - 3.25, "ERFINV_MIDDLE", True),
                      polynomial(root - 5.0, "ERFINV_OUTER", True))
        y = where(w < 6.25, polynomial(w - 3.125, "ERFINV_INNER", True), outer)
    y = y * x
    return where(abs(x).equals(1.0), x * math.inf, y)
