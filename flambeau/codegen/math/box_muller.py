"""The Box-Muller transform, bit for bit as in PyTorch's AVX2 kernel: Cephes polynomials with the same fused operations.

For float32 only, and only on targets with fma. `kernels.random.boxmuller` is the same on NumPy arrays, and documents
the roundings.
"""

from __future__ import annotations

from ...kernels.random.boxmuller import COS, FOUR_OVER_PI, LN2_HIGH, LN2_LOW, LOG, PI_PARTS, SIN, SQRT_HALF, TWO_PI
from ..llvm.vectors import SINGLE, Integer, Real, where
from .building_blocks import fma


def radius(u: Real) -> Real:
    """√(−2 ln(1 − u))."""
    bits = (1.0 - u).bits()
    exponent = (bits - SINGLE.bits_of(SQRT_HALF)) >> SINGLE.mantissa
    x = (bits - (exponent << SINGLE.mantissa)).as_real() - 1.0  # 1 − u = (1 + x) 2^exponent
    e, z = exponent.to_real(), x * x
    y = u.context.real(LOG[0])
    for coefficient in LOG[1:]:
        y = fma(y, x, coefficient)
    y = fma(y * x, z, e * LN2_LOW)
    y = fma(z, -0.5, y) + x
    return (fma(e, LN2_HIGH, y) * -2.0).sqrt()


def _octant(u: Real) -> tuple[Real, Integer]:
    """(x, octant) with 2πu = x + octant π/4, octant even."""
    theta = u * TWO_PI
    shifter = SINGLE.shifter
    octant = ((theta * FOUR_OVER_PI).trunc() + shifter).bits() - SINGLE.bits_of(shifter)
    octant = (octant + 1) & -2
    x, n = theta, octant.to_real()
    for part in PI_PARTS:
        x = fma(n, part, x)
    return x, octant


def _sine_cosine(x: Real) -> tuple[Real, Real]:
    """sin x and cos x for |x| <= π/4."""
    z = x * x
    cosine = fma(fma(z, COS[0], COS[1]), z, COS[2]) * z
    cosine = fma(cosine, z, z * -0.5) + 1.0
    sine = fma(fma(z, SIN[0], SIN[1]), z, SIN[2]) * z
    return fma(sine, x, x), cosine


def sine(u: Real) -> Real:
    """sin 2πu for 0 <= u < 1."""
    x, octant = _octant(u)
    s, c = _sine_cosine(x)
    return (where((octant & 2).equals(2), c, s).bits() ^ ((octant & 4) << 29)).as_real()


def cosine(u: Real) -> Real:
    """cos 2πu for 0 <= u < 1."""
    x, octant = _octant(u)
    s, c = _sine_cosine(x)
    return (where((octant & 2).equals(2), s, c).bits() ^ ((((octant - 2) ^ -1) & 4) << 29)).as_real()
