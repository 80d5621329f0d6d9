"""The Box-Muller transform on float32 as PyTorch's AVX2 kernel computes it: Cephes polynomials with its FMAs.

Sixteen uniforms are transformed to sixteen normal numbers: the first eight to radii, the last eight to angles,

    r = √(−2 ln(1 − u₁)),  θ = 2π u₂,  out = (r cos θ, r sin θ).

Each float32 value is held in float64, where a product is exact and a sum nearly so, and rounded wherever the
kernel rounds. Such double rounding could differ from an FMA; over all 2**24 uniforms, of either function, it
never does (tests/kernels/test_random_exhaustive.py), so no correction is needed.
"""

from __future__ import annotations

import numpy as np

from . import accelerated

_LANES = 8
_CHUNK = 8192  # pairs per block, whose temporaries stay in L2


def _single(*values: float) -> tuple[np.ndarray, ...]:
    """float32 constants as 0-d float64 arrays, the fastest operands for a ufunc."""
    return tuple(np.array(np.float32(v), dtype=np.float64) for v in values)


#: the kernel's constants: logarithm, range reduction by octants, cosine and sine
LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
       2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
LN2_LOW, LN2_HIGH = -2.12194440e-4, 0.693359375
SQRT_HALF = 0.707106781186547524
FOUR_OVER_PI, TWO_PI = 1.27323954473516, 6.283185307179586
PI_PARTS = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)

_LOG, _PI_PARTS, _COS, _SIN = _single(*LOG), _single(*PI_PARTS), _single(*COS), _single(*SIN)
_LN2_LOW, _LN2_HIGH = _single(LN2_LOW, LN2_HIGH)
_SQRT_HALF_BITS = np.int32(np.float32(SQRT_HALF).view(np.int32))
_FOUR_OVER_PI, _TWO_PI = np.float32(FOUR_OVER_PI), np.float32(TWO_PI)


def box_muller(data: np.ndarray) -> None:
    """Transform uniforms to standard normal numbers in place; float32, of a size that is a multiple of 16."""
    for kernel in accelerated.NORMALS:
        if kernel(data):
            return
    blocks = data.reshape(-1, 2, _LANES)
    step = _CHUNK // _LANES
    for start in range(0, len(blocks), step):
        block = blocks[start:start + step]
        r = radius(block[:, 0].reshape(-1))
        sine, cosine = sine_cosine(block[:, 1].reshape(-1))
        np.multiply(r.reshape(-1, _LANES), cosine.reshape(-1, _LANES), out=block[:, 0])
        np.multiply(r.reshape(-1, _LANES), sine.reshape(-1, _LANES), out=block[:, 1])


class _Rounder:
    """Rounds a float64 array to float32 and back, in place."""

    __slots__ = ("_single",)

    def __init__(self, n: int) -> None:
        self._single = np.empty(n, np.float32)

    def __call__(self, wide: np.ndarray) -> None:
        single = self._single
        single[...] = wide
        wide[...] = single


def radius(u: np.ndarray) -> np.ndarray:
    """√(−2 ln(1 − u)), float32 of float32."""
    bits = np.subtract(np.float32(1.0), u).view(np.int32)
    exponent = bits - _SQRT_HALF_BITS
    exponent >>= 23
    bits -= exponent << 23  # 1 − u = m · 2**exponent with m in [√½, √2)
    x = bits.view(np.float32) - np.float32(1.0)
    squared = np.multiply(x, x)

    round_single = _Rounder(u.size)
    wide_x, wide_e, z = x.astype(np.float64), exponent.astype(np.float64), squared.astype(np.float64)
    y = wide_x * _LOG[0]
    y += _LOG[1]
    round_single(y)
    for coefficient in _LOG[2:]:
        y *= wide_x
        y += coefficient
        round_single(y)
    y *= wide_x
    round_single(y)
    y *= z
    low = wide_e * _LN2_LOW
    round_single(low)
    y += low
    round_single(y)
    z *= 0.5
    y -= z
    round_single(y)
    y += wide_x
    round_single(y)
    wide_e *= _LN2_HIGH
    y += wide_e
    log: np.ndarray = y.astype(np.float32)
    log *= np.float32(-2.0)
    np.sqrt(log, out=log)
    return log


def sine_cosine(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sin 2πu and cos 2πu, float32 of float32 in [0, 1)."""
    theta = u * _TWO_PI
    octant = np.multiply(theta, _FOUR_OVER_PI).astype(np.int32)
    octant += 1
    octant &= -2

    round_single = _Rounder(u.size)
    x, wide_octant = theta.astype(np.float64), octant.astype(np.float64)
    for part in _PI_PARTS:
        x += wide_octant * part
        round_single(x)
    z = x * x
    round_single(z)

    cosine = z * _COS[0]
    cosine += _COS[1]
    round_single(cosine)
    cosine *= z
    cosine += _COS[2]
    round_single(cosine)
    cosine *= z
    round_single(cosine)
    cosine *= z
    cosine -= 0.5 * z
    round_single(cosine)
    cosine += 1.0

    sine = z * _SIN[0]
    sine += _SIN[1]
    round_single(sine)
    sine *= z
    sine += _SIN[2]
    round_single(sine)
    sine *= z
    round_single(sine)
    sine *= x
    sine += x

    swapped = (octant & 2) != 0
    s, c = sine.astype(np.float32), cosine.astype(np.float32)
    s, c = np.where(swapped, c, s), np.where(swapped, s, c)
    # the octant's bits are the signs: bit 2 negates the sine, bit 2 of (octant − 2) preserves the cosine
    s.view(np.int32)[...] ^= (octant & 4) << 29
    c.view(np.int32)[...] ^= (~(octant - 2) & 4) << 29
    return s, c
