"""Uniforms to normal numbers as PyTorch's AVX2 kernel makes them, bit for bit: Cephes polynomials, fused as there.

Of float32 alone, and only where multiply-and-add is one instruction. `kernels.random.boxmuller` says the same of
NumPy's arrays, and what is rounded where.
"""

from __future__ import annotations

from .lanes import SINGLE, Real, Whole, fma, where

_LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
_LN2_LOW, _LN2_HIGH = -2.12194440e-4, 0.693359375
_SQRT_HALF = 0.707106781186547524

_FOUR_OVER_PI, _TWO_PI = 1.27323954473516, 6.283185307179586
_PI_PARTS = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)


def radius(u: Real) -> Real:
    """√(−2 ln(1 − u))."""
    bits = (1.0 - u).bits()
    exponent = (bits - SINGLE.pattern(_SQRT_HALF)) >> SINGLE.mantissa
    x = (bits - (exponent << SINGLE.mantissa)).pattern() - 1.0  # 1 − u = (1 + x) 2^exponent
    e, z = exponent.number(), x * x
    y = u.lanes.real(_LOG[0])
    for coefficient in _LOG[1:]:
        y = fma(y, x, coefficient)
    y = fma(y * x, z, e * _LN2_LOW)
    y = fma(z, -0.5, y) + x
    return (fma(e, _LN2_HIGH, y) * -2.0).sqrt()


def _octant(u: Real) -> tuple[Real, Whole]:
    """(x, octant): 2πu = x + octant π/4, octant even."""
    theta = u * _TWO_PI
    shifter = SINGLE.shifter
    octant = ((theta * _FOUR_OVER_PI).trunc() + shifter).bits() - SINGLE.pattern(shifter)
    octant = (octant + 1) & -2
    x, n = theta, octant.number()
    for part in _PI_PARTS:
        x = fma(n, part, x)
    return x, octant


def _both(x: Real) -> tuple[Real, Real]:
    """sin x and cos x for |x| <= π/4."""
    z = x * x
    cosine = fma(fma(z, _COS[0], _COS[1]), z, _COS[2]) * z
    cosine = fma(cosine, z, z * -0.5) + 1.0
    sine = fma(fma(z, _SIN[0], _SIN[1]), z, _SIN[2]) * z
    return fma(sine, x, x), cosine


def sine(u: Real) -> Real:
    """sin 2πu for 0 <= u < 1."""
    x, octant = _octant(u)
    s, c = _both(x)
    return (where((octant & 2).equals(2), c, s).bits() ^ ((octant & 4) << 29)).pattern()


def cosine(u: Real) -> Real:
    """cos 2πu for 0 <= u < 1."""
    x, octant = _octant(u)
    s, c = _both(x)
    return (where((octant & 2).equals(2), s, c).bits() ^ ((((octant - 2) ^ -1) & 4) << 29)).pattern()
