"""CUDA's functions of float32, bit for bit: their argument reductions, polynomials and approximate instructions.

The polynomials and the order of the operations are public: compilers write them into the PTX of every program that
calls `expf`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from ...scalar.scalar_ir import Node, apply, bitcast, cast, constant, copysign, fma, select, trunc
from .constants import F32, F64, I32, I64, U32, U64, horner, single

_LOG = (0xBE055027, 0x3E1039F6, 0xBDF8CDCC, 0x3E0F2955, 0xBE2AD8B9, 0x3E4CED0B, 0xBE7FFF22, 0x3EAAAA78, 0xBF000000)
_LOG1P = (0xBD39BF78, 0x3DD80012, 0xBE0778E0, 0x3E146475, 0xBE2A68DD, 0x3E4CAF9E, 0xBE800042, 0x3EAAAAE6, 0xBF000000)
_TANH = (0x3C80F082, 0xBD563CAE, 0x3E085941, 0xBEAAA9ED, 0x00000000)
_LOG2 = (0x3DC6B27F, 0xBE2C7F30, 0x3E2FCF2A, 0xBE374E43, 0x3E520BF4, 0xBE763C8B, 0x3E93BF99, 0xBEB8AA49, 0x3EF6384A,
         0xBF38AA3B)
_EXPM1 = (0x3AB5EBE6, 0x3C095663, 0x3D2AABE3, 0x3E2AA9F6, 0x3EFFFFFE)
_TAN = (0x3C190000, 0x3B560000, 0x3CC70000, 0x3D5B0000, 0x3E089438, 0x3EAAAA88)
_POW_LOG = (0x3A2C32E4, 0x3B52E7DB, 0x3C93BB73, 0x3DF6384F)
_POW_EXP = (0x391FCB8E, 0x3AAF85ED, 0x3C1D9856, 0x3D6357BB, 0x3E75FDEC, 0x3F317218, 0x3F800000)
_SINH = (0x363D0ADA, 0x394FFF49, 0x3C08889A, 0x3E2AAAAB)
_ATAN = (0x3B2090AA, 0xBC6BE14F, 0x3D23397E, 0xBD948A7A, 0x3DD76B21, 0xBE111E88, 0x3E4CAF60, 0xBEAAAA27)
_ASIN = (0x3D4DD2F7, 0x3C99CA97, 0x3D3F90E8, 0x3D993CCF, 0x3E2AAC04)
_ACOS = (0x3D10ECEF, 0x3C8B1ABB, 0x3CFC028C, 0x3D372139, 0x3D9993DB, 0x3E2AAAC6)
_ERFC = (0x3A69A091, 0x3BE6E05B, 0xBC81FB4B, 0x3D15373B, 0xBD887C5A, 0x3DC021D5, 0xBDCED424, 0x3D8B74DE, 0x3C7BF170,
         0xBE0EF8D4, 0x3F9DD2C9)
_ERF_NEAR = (0x38B1E96A, 0xBA574D20, 0x3BAAD5EA, 0xBCDC1BE7, 0x3DE718AF, 0xBEC093AC, 0x3E0375D3)
_ERF_FAR = (0x38EB4C3A, 0xBAAE005B, 0x3C09919F, 0xBD24D99A, 0x3E235519, 0x3F69B4F9, 0x3F210A14)
_LOG2_E, _LOG2_E_LOW, _LN2 = 0x3FB8AA3B, 0x32A57060, 0x3F317218
_HALF_PI = 0x3F6EE581, 0x3FD774EB  # two factors


def _abs(x: Node) -> Node:
    return apply("abs", x)


def _number(value: float) -> Node:
    return constant(value, F32)


def _shifted_to_exponent(shifted: Node) -> Node:
    """2^n of a float32 in whose low bits n plus the bias is."""
    return bitcast(bitcast(shifted, U32) * (1 << 23), F32)


def exp(x: Node) -> Node:
    """eˣ."""
    scaled = fma(x, single(0x3BBB989D), single(0x3F000000))
    inside = apply("fmin", select(scaled > 0.0, scaled, _number(0.0)), _number(1.0))
    shifted = apply("fma_down", inside, single(0x437C0000), single(0x4B400001))
    n = shifted + single(0xCB40007F)
    rest = fma(x, single(_LOG2_E_LOW), fma(x, single(_LOG2_E), -n))
    return apply("exp2_approx", rest) * _shifted_to_exponent(shifted)


def _split_for_log(x: Node, lowest: int = 0x3F2AAAAB) -> tuple[Node, Node, Node]:
    """(m - 1, k, scaled) with x = 2^k m; m is at least the float32 of the bits `lowest`: 2/3, or √½."""
    small = x < single(0x00800000)
    scaled = select(small, x * single(0x4B000000), x)
    bits = bitcast(scaled, I32)
    exponent = (bits + -lowest) & -0x800000
    k = fma(cast(exponent, F32), single(0x34000000), select(small, single(0xC1B80000), single(0)))
    return bitcast(bits - exponent, F32) + single(0xBF800000), k, scaled


def _log_parts(x: Node) -> tuple[Node, Node]:
    """(the logarithm but where x is zero, the scaled argument)."""
    f, k, scaled = _split_for_log(x)
    finite = fma(k, single(_LN2), fma(f * horner(f, _LOG), f, f))
    infinity = single(0x7F800000)
    special = bitcast(scaled, U32) >= 0x7F800000
    return select(special, fma(scaled, infinity, infinity), finite), scaled


def log(x: Node) -> Node:
    """The natural logarithm."""
    y, scaled = _log_parts(x)
    return select(apply("eq", scaled, 0.0), single(0xFF800000), y)


def log2(x: Node) -> Node:
    """The logarithm to base 2."""
    f, k, scaled = _split_for_log(x, 0x3F3504F3)
    finite = k + fma(f, single(_LOG2_E), f * (f * horner(f, _LOG2)))
    infinity = single(0x7F800000)
    special = bitcast(scaled, U32) >= 0x7F800000
    y = select(special, fma(scaled, infinity, infinity), finite)
    return select(apply("eq", scaled, 0.0), single(0xFF800000), y)


def log10(x: Node) -> Node:
    """The logarithm to base 10."""
    y, scaled = _log_parts(x)
    return select(apply("eq", scaled, 0.0), single(0xFF800000), y * single(0x3EDE5BD9))


def fast_log(x: Node) -> Node:
    """CUDA's `__logf`."""
    return apply("log2_approx", x) * single(_LN2)


def fast_exp(x: Node) -> Node:
    """CUDA's `__expf`."""
    return apply("exp2_approx", x * single(_LOG2_E))


def fast_tan(x: Node) -> Node:
    """CUDA's `__tanf`."""
    return apply("div_approx", apply("sin_approx", x), apply("cos_approx", x))


def _reduced(x: Node) -> tuple[Node, Node]:
    """(r, q) with x = r + q π/2."""
    q = cast(apply("round", x * single(0x3F22F983)), I32)
    n = cast(q, F32)
    r = x
    for bits in (0xBFC90FDA, 0xB3A22168, 0xA7C234C5):
        r = fma(n, single(bits), r)
    return r, q


def _sine_of(r: Node, q: Node) -> Node:
    """The sine of r + q π/2."""
    odd = apply("ne", q & 1, 0)
    square = r * r
    z = select(odd, _number(1.0), r)
    p = select(odd, fma(single(0x37CBAC00), square, single(0xBAB607ED)), single(0xB94D4153))
    p = fma(p, square, select(odd, single(0x3D2AAABB), single(0x3C0885E4)))
    p = fma(p, square, select(odd, single(0xBEFFFFFF), single(0xBE2AAAA8)))
    y = fma(p, fma(square, z, _number(0.0)), z)
    return select(apply("ne", q & 2, 0), fma(y, _number(-1.0), _number(0.0)), y)


#: the fraction 2/π in words of 32 bits, after two of zeros
_TWO_OVER_PI = (0x00000000, 0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041)


def _reduced_huge(x: Node) -> tuple[Node, Node]:
    """(r, q) with x = r + q π/2 for |x| from 105615 on, by Payne's and Hanek's method."""
    bits = bitcast(x, U32)
    mantissa = cast((bits & 0x007FFFFF) * (1 << 8) | 0x80000000, U64)
    first = ((bits / (1 << 23)) & 0xFF) - 96  # the first of the bits of 2/π of which the product's 64 bits depend
    shift = first & 31
    words = []
    for k in range(4):
        word = constant(_TWO_OVER_PI[4 + k], U32)
        for i in (3, 2, 1):
            word = select(apply("eq", first / 32, i), constant(_TWO_OVER_PI[i + k], U32), word)
        words.append(cast(word, U64))
    factor = cast(bitcast((shift + 127) * (1 << 23), F32), U64)
    high, middle, low = (cast((one * (1 << 32) | other) * factor / (1 << 32), U32) for one, other in pairwise(words))
    product = mantissa * cast(middle, U64) + mantissa * cast(low, U64) / (1 << 32)
    product = product + cast(cast(mantissa, U32) * high, U64) * (1 << 32)
    above = apply("ne", product & (1 << 61), 0)
    q = cast(product / (1 << 62), I32) + cast(above, I32)
    rest = cast(product & ((1 << 62) - 1), I64) - select(above, constant(1 << 62, I64), constant(0, I64))
    r = cast(cast(rest, F64) * (math.pi / 2 * 2.0**-62), F32)
    return select(x < 0.0, -r, r), select(x < 0.0, -q, q)


def _reduced_any(x: Node) -> tuple[Node, Node]:
    """(r, q) with x = r + q π/2."""
    small, huge = _reduced(x), _reduced_huge(x)
    is_small = _abs(x) < single(0x47CE4780)
    r, q = (select(is_small, one, other) for one, other in zip(small, huge, strict=True))
    infinite = apply("not", _abs(x) < math.inf)
    return select(infinite, x * 0.0, r), q


def sin(x: Node) -> Node:
    """Sine."""
    return _sine_of(*_reduced_any(x))


def cos(x: Node) -> Node:
    """Cosine."""
    r, q = _reduced_any(x)
    return _sine_of(r, q + 1)


def tan(x: Node) -> Node:
    """Tangent."""
    r, q = _reduced_any(x)
    square = r * r
    y = fma(horner(square, _TAN), square * r, r)
    return select(apply("ne", q & 1, 0), apply("recip_approx", -y), y)


def exp2(x: Node) -> Node:
    """2ˣ."""
    return apply("exp2_approx", x)


def expm1(x: Node) -> Node:
    """eˣ − 1."""
    n = apply("round", x * single(_LOG2_E))
    n = select(_abs(x) < single(0x3ED1EB85), _number(0.0), n)
    r = fma(n, single(0xB5BFBE8E), fma(n, single(0xBF317200), x))
    largest = apply("eq", n, 128.0)
    n = select(largest, n + -1.0, n)
    scale = apply("exp2_approx", n)
    p = fma(r * horner(r, _EXPM1), r, r)
    y = fma(p, scale, scale + -1.0)
    y = select(largest, y + y, y)
    y = select(n > 128.0, single(0x7F800000), y)
    y = select(n < -25.0, _number(-1.0), y)
    return select(apply("eq", x, 0.0), x + x, select(apply("ne", x, x), x, y))


def power(x: Node, y: Node) -> Node:
    """xʸ: 2^(y log₂ |x|), with the logarithm as a sum of two numbers."""
    a = _abs(x)
    f, k, _ = _split_for_log(a, 0x3F3504F3)
    inverse = apply("recip_approx", f + 2.0)
    q = (f + f) * inverse
    square = q * q
    rest = f - q
    q_low = inverse * fma(-q, f, rest + rest)
    p = horner(square, _POW_LOG) * square
    log2_e = single(_LOG2_E)
    high = fma(q, log2_e, k)
    low = fma(q, single(0x32A55E34), fma(q_low, log2_e, fma(q, log2_e, k - high)))
    low = fma(p, q, fma(p * 3.0, q_low, low))
    log_high = high + low
    log_low = low - (log_high - high)
    product = log_high * y
    product_low = fma(log_low, y, fma(log_high, y, -product))
    n = apply("round", product)
    value = horner(product - n + product_low, _POW_EXP)
    exponent = cast(select(_abs(product) > 152.0, _number(0.0), n), I32)
    up = exponent > 0
    shifted = bitcast(bitcast(exponent, U32) * (1 << 23) + select(up, constant(0, U32), constant(0x7D000000, U32)), F32)
    value = value * select(up, single(0x7F000000), single(0x02000000)) * shifted
    value = select(_abs(product) > 152.0, select(product < 0.0, _number(0.0), single(0x7F800000)), value)
    half = trunc(y * 0.5)
    odd = apply("eq", _abs(y - (half + half)), 1.0)
    negative = x < 0.0
    value = select(negative & odd, -value, value)
    value = select(negative & apply("ne", apply("floor", y), y), single(0x7FFFFFFF), value)
    extreme = bitcast(x + x, U32)
    extreme = select(y < 0.0, extreme ^ 0x7F800000, extreme)
    extreme = bitcast(select(odd, extreme, extreme & 0x7FFFFFFF), F32)
    value = select(apply("eq", a, 0.0) | apply("eq", a, math.inf), extreme, value)
    value = select(apply("eq", x, -1.0) & apply("eq", _abs(y), math.inf), _number(1.0), value)
    value = select(apply("ne", x, x) | apply("ne", y, y), x + y, value)
    return select(apply("eq", x, 1.0) | apply("eq", y, 0.0), _number(1.0), value)


def tanh(x: Node) -> Node:
    """Hyperbolic tangent."""
    a = _abs(x)
    denominator = apply("exp2_approx", a * single(0x4038AA3B)) + 1.0
    far = fma(apply("recip_approx", denominator), _number(-2.0), _number(1.0))
    far = copysign(select(a >= single(0x41102CB4), _number(1.0), far), x)
    return select(a >= single(0x3F19999A), far, fma(horner(x * x, _TANH), x, x))


def _exp_by_truncation(x: Node, bias: int) -> Node:
    """eˣ, times a power of two that the bias tells, for sinh, cosh and erfc."""
    n = trunc(x * single(_LOG2_E))
    n = select(_abs(n) > single(0x42FC0000), copysign(single(0x42FC0000), n), n)
    rest = fma(n, single(0x3102E308), fma(n, single(0xBF317218), x))
    scale = _shifted_to_exponent(n + single(bias))
    return apply("exp2_approx", rest * single(_LOG2_E)) * scale


def sinh(x: Node) -> Node:
    """Hyperbolic sine."""
    a = _abs(x)
    quarter = _exp_by_truncation(a, 0x4B40007D)
    far = fma(_number(2.0), quarter, apply("div_approx", single(0xBE000000), quarter))
    square = x * x
    near = fma(square * horner(square, _SINH), x, x)
    return select(a >= 1.0, copysign(far, x), near)


def cosh(x: Node) -> Node:
    """Hyperbolic cosine."""
    quarter = _exp_by_truncation(_abs(x), 0x4B40007D)
    return fma(_number(2.0), quarter, apply("div_approx", single(0x3E000000), quarter))


def erf(x: Node) -> Node:
    """The error function."""
    a = _abs(x)
    far = a >= single(0x3F8060FE)
    t = select(far, a, x * x)
    p = select(far, single(_ERF_FAR[0]), single(_ERF_NEAR[0]))
    for one, other in zip(_ERF_FAR[1:], _ERF_NEAR[1:], strict=True):
        p = fma(p, t, select(far, single(one), single(other)))
    m = select(far, -a, x)
    y = fma(p, m, m)
    return select(far, copysign(_number(1.0) - apply("exp2_approx", y), x), y)


def erfc(x: Node) -> Node:
    """1 − erf x."""
    a = _abs(x)
    inverse = apply("recip_approx", a + 4.0)
    q = (a + -4.0) * inverse
    rest = fma(-q, a, fma(_number(-4.0), q + 1.0, a))
    q = fma(inverse, rest, q)
    p = horner(q, _ERFC)
    inverse = apply("recip_approx", fma(_number(2.0), a, _number(1.0)))
    quotient = p * inverse
    ratio = fma(fma(a, quotient * -2.0, p) - quotient, inverse, quotient)
    square = a * a
    power = _exp_by_truncation(-square, 0x4B40007F)
    power = fma(power, fma(-a, a, square), power)
    y = select(a > single(0x4120E148), _number(0.0), ratio * power)
    return select(x < 0.0, _number(2.0) - y, y)


def atan(x: Node) -> Node:
    """Inverse tangent."""
    a = _abs(x)
    inverted = a > 1.0
    t = select(inverted, apply("recip_approx", a), a)
    square = t * t
    y = fma(square * horner(square, _ATAN), t, t)
    y = select(inverted, fma(single(_HALF_PI[0]), single(_HALF_PI[1]), -y), y)
    return select(a <= math.inf, copysign(y, x), y)


def _root_of_half(a: Node) -> Node:
    """√((1 − a) / 2)."""
    half = fma(_number(0.5), -a, _number(0.5))
    inverse = apply("rsqrt_approx", half)
    root = half * inverse
    root = fma(root, fma(-root, inverse * 0.5, _number(0.5)), root)
    return select(apply("eq", a, 1.0), _number(0.0), root)


def asin(x: Node) -> Node:
    """Inverse sine."""
    a = _abs(x)
    near_one = a > single(0x3F0F5C29)
    t = select(near_one, _root_of_half(a), a)
    square = t * t
    y = fma(square * horner(square, _ASIN), t, t)
    y = select(near_one, fma(single(_HALF_PI[0]), single(_HALF_PI[1]), y * -2.0), y)
    return select(y <= math.inf, copysign(y, x), y)


def acos(x: Node) -> Node:
    """Inverse cosine."""
    a = _abs(x)
    near_one = a > single(0x3F0F5C29)
    t = copysign(select(near_one, _root_of_half(a), a), x)
    square = t * t
    y = fma(square * horner(square, _ACOS), t, t)
    turned = fma(single(_HALF_PI[0]), single(_HALF_PI[1]), select(near_one, y, -y))
    y = select(x > single(0x3F0F5C29), y, turned)
    return select(near_one, y + y, y)


def log1p(x: Node) -> Node:
    """log(1 + x)."""
    bits = bitcast(x, I32)
    # 1 + x, towards zero
    rounded = x + 1.0
    over = fma(rounded + -1.0, _number(1.0), -x) > 0.0
    toward = select(over & (rounded > 0.0), bitcast(bitcast(rounded, I32) - 1, F32), rounded)
    exponent = (bitcast(toward, I32) + -0x3F400000) & -0x800000
    scale = bitcast(constant(0x40800000, I32) - exponent, F32)
    m = bitcast(bits - exponent, F32) + fma(scale, _number(0.25), _number(-1.0))
    k = cast(exponent, F32) * single(0x34000000)
    y = fma(k, single(_LN2), fma(m * horner(m, _LOG1P), m, m))
    infinity = single(0x7F800000)
    special = bitcast(x, U32) >= 0x7F800000
    y = select(special & (bits > -0x40800000), fma(x, infinity, infinity), y)
    y = select(x < -1.0, single(0x7FC00000), select(apply("eq", x, -1.0), single(0xFF800000), y))
    return select(apply("eq", x, 0.0), x, y)


def sigmoid(x: Node) -> Node:
    """1 / (1 + e⁻ˣ), PyTorch's formula on GPUs."""
    return _number(1.0) / (exp(-x) + 1.0)


def softplus(x: Node) -> Node:
    """log(1 + eˣ)."""
    return log1p(exp(x))


def log_sigmoid(x: Node) -> Node:
    """min(x, 0) − log(1 + e^−|x|)."""
    return select(x < 0.0, x, _number(0.0)) - log1p(exp(-_abs(x)))


def rsqrt(x: Node) -> Node:
    """1 / √x."""
    return apply("rsqrt_approx", x)


FUNCTIONS: dict[str, Callable[..., Node]] = {
    "pow": power,
    **{each.__name__: each for each in (
        exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, tanh, sinh, cosh, erf, erfc, atan, asin, acos,
        sigmoid, softplus, log_sigmoid, rsqrt)}}


__all__ = ["FUNCTIONS", "fast_exp", "fast_log", "fast_tan"]
