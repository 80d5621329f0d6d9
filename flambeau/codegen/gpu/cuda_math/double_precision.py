"""CUDA's logarithm, exponential, sine and cosine of float64, which random numbers are made of."""

from __future__ import annotations

import math

from ...scalar.scalar_ir import Node, apply, bitcast, cast, constant, fma, select
from .constants import F64, I32, I64, U64, double, horner

_LOG = (0x3EB1380B3AE80F1E, 0x3ED0EE258B7A8B04, 0x3EF3B2669F02676F, 0x3F1745CBA9AB0956, 0x3F3C71C72D1B5154,
        0x3F624924923BE72D, 0x3F8999999999A3C4, 0x3FB5555555555554)
_EXP = (0x3E5ADE1569CE2BDF, 0x3E928AF3FCA213EA, 0x3EC71DEE62401315, 0x3EFA01997C89EB71, 0x3F2A01A014761F65,
        0x3F56C16C1852B7AF, 0x3F81111111122322, 0x3FA55555555502A1, 0x3FC5555555555511, 0x3FE000000000000B,
        0x3FF0000000000000, 0x3FF0000000000000)
_SIN = (0x3DE5DB65F9785EBA, 0xBE5AE5F12CB0D246, 0x3EC71DE369ACE392, 0xBF2A01A019DB62A1, 0x3F81111111110818,
        0xBFC5555555555554, 0x0000000000000000)
_COS = (0xBDA8FF8320FD8164, 0x3E21EEA7C1EF8528, 0xBE927E4F8E06E6D9, 0x3EFA01A019DDBCE9, 0xBF56C16C16C15D47,
        0x3FA5555555555551, 0xBFE0000000000000, 0x3FF0000000000000)
_LN2, _LN2_LOW = 0x3FE62E42FEFA39EF, 0x3C7ABC9E3B39803F
_PI, _PI_LOW = 0x400921FB54442D18, 0x3CA1A62633145C07


def log(x: Node) -> Node:
    """The natural logarithm."""
    small = x < 2.0**-1022
    scaled = select(small, x * 2.0**54, x)
    bits = bitcast(scaled, U64)
    exponent = cast(bits / (1 << 52), I64) - select(small, constant(1023 + 54, I64), constant(1023, I64))
    m = bitcast((bits & ((1 << 52) - 1)) | (1023 << 52), F64)
    # the high word of the mantissa decides whether it is halved
    large = (bitcast(m, U64) / (1 << 32)) >= 1073127583
    m = select(large, bitcast(bitcast(m, U64) - (1 << 52), F64), m)
    k = cast(exponent + cast(large, I64), F64)
    f, g = m + -1.0, m + 1.0
    inverse = apply("recip_approx", g)
    e = fma(-g, inverse, constant(1.0, F64))
    inverse = fma(fma(e, e, e), inverse, inverse)
    product = f * inverse
    q = fma(f, inverse, product)
    square = q * q
    p = horner(square, _LOG)
    rest = f - q
    rest = inverse * fma(-q, f, rest + rest)
    tail = fma(square * p, q, rest)
    high = fma(k, double(_LN2), q)
    low = tail - (fma(-k, double(_LN2), high) - q)
    y = high + fma(k, double(_LN2_LOW), low)
    infinity = constant(math.inf, F64)
    finite = (x > 0.0) & (x < math.inf)
    return select(finite, y, select(apply("eq", x, 0.0), -infinity, fma(x, infinity, infinity)))


def exp(x: Node) -> Node:
    """eˣ."""
    shifted = fma(x, double(0x3FF71547652B82FE), double(0x4338000000000000))
    n = shifted + double(0xC338000000000000)
    r = fma(n, double(0xBC7ABC9E3B39803F), fma(n, double(0xBFE62E42FEFA39EF), x))
    p = horner(r, _EXP)
    low = cast(bitcast(shifted, U64), I32)
    scaled = bitcast(bitcast(p, I64) + cast(low, I64) * (1 << 52), F64)
    # results that are subnormal or infinite: in two steps
    half = cast(cast(low, F64) * 0.5, I32)
    first = bitcast(bitcast(p, I64) + cast(half, I64) * (1 << 52), F64)
    second = bitcast((cast(low - half, I64) + 1023) * (1 << 52), F64)
    a = apply("abs", x)
    near = select(a < double(0x4086232B00000000), scaled, first * second)
    outside = select(x < 0.0, constant(0.0, F64), x + constant(math.inf, F64))
    return select(a < double(0x4087480000000000), near, outside)


def sincospi(x: Node) -> tuple[Node, Node]:
    """sin πx and cos πx for 0 < x <= 2."""
    n = apply("round", x + x)
    r = fma(-n, constant(0.5, F64), x)
    t = fma(r, double(_PI), r * double(_PI_LOW))
    square = t * t
    sine, cosine = fma(horner(square, _SIN), t, t), horner(square, _COS)
    q = cast(n, I64)
    odd = apply("ne", q & 1, 0)
    sine, cosine = select(odd, cosine, sine), select(odd, -sine, cosine)
    turned = apply("ne", q & 2, 0)
    sine, cosine = select(turned, -sine, sine), select(turned, -cosine, cosine)
    return sine + 0.0, cosine + 0.0


__all__ = ["exp", "log", "sincospi"]
