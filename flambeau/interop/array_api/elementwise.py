"""Elementwise functions."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ..._tensor import Tensor, functions
from .data_types import promoted


def abs(x: Tensor, /) -> Tensor:
    """The absolute value.

    >>> from flambeau.interop import array_api as xp
    >>> xp.abs(xp.asarray([-1., 2.]))
    tensor([1., 2.])
    """
    return functions.abs(x)


def acos(x: Tensor, /) -> Tensor:
    """The arccosine.

    >>> from flambeau.interop import array_api as xp
    >>> xp.acos(xp.asarray([1., 0.]))
    tensor([0.0000, 1.5708])
    """
    return functions.acos(x)


def acosh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic cosine.

    >>> from flambeau.interop import array_api as xp
    >>> xp.acosh(xp.asarray([1., 2.]))
    tensor([0.0000, 1.3170])
    """
    return functions.acosh(x)


def asin(x: Tensor, /) -> Tensor:
    """The arcsine.

    >>> from flambeau.interop import array_api as xp
    >>> xp.asin(xp.asarray([0., 1.]))
    tensor([0.0000, 1.5708])
    """
    return functions.asin(x)


def asinh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic sine.

    >>> from flambeau.interop import array_api as xp
    >>> xp.asinh(xp.asarray([0., 1.]))
    tensor([0.0000, 0.8814])
    """
    return functions.asinh(x)


def atan(x: Tensor, /) -> Tensor:
    """The arctangent.

    >>> from flambeau.interop import array_api as xp
    >>> xp.atan(xp.asarray([0., 1.]))
    tensor([0.0000, 0.7854])
    """
    return functions.atan(x)


def atanh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic tangent.

    >>> from flambeau.interop import array_api as xp
    >>> xp.atanh(xp.asarray([0., 0.5]))
    tensor([0.0000, 0.5493])
    """
    return functions.atanh(x)


def bitwise_invert(x: Tensor, /) -> Tensor:
    """Each bit inverted; the negation of booleans.

    >>> from flambeau.interop import array_api as xp
    >>> xp.bitwise_invert(xp.asarray([0, 5]))
    tensor([-1, -6])
    """
    return functions.bitwise_not(x)


def ceil(x: Tensor, /) -> Tensor:
    """The smallest integer that is not less, in the same dtype.

    >>> from flambeau.interop import array_api as xp
    >>> xp.ceil(xp.asarray([0.5, -0.5]))
    tensor([1., -0.])
    """
    return functions.ceil(x)


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate.

    >>> from flambeau.interop import array_api as xp
    >>> xp.conj(xp.asarray([1+2j]))
    tensor([1.-2.j])
    """
    return functions.conj(x)


def cos(x: Tensor, /) -> Tensor:
    """The cosine.

    >>> from flambeau.interop import array_api as xp
    >>> xp.cos(xp.asarray([0., 1.]))
    tensor([1.0000, 0.5403])
    """
    return functions.cos(x)


def cosh(x: Tensor, /) -> Tensor:
    """The hyperbolic cosine.

    >>> from flambeau.interop import array_api as xp
    >>> xp.cosh(xp.asarray([0., 1.]))
    tensor([1.0000, 1.5431])
    """
    return functions.cosh(x)


def exp(x: Tensor, /) -> Tensor:
    """The exponential function.

    >>> from flambeau.interop import array_api as xp
    >>> xp.exp(xp.asarray([0., 1.]))
    tensor([1.0000, 2.7183])
    """
    return functions.exp(x)


def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, exact near 0.

    >>> from flambeau.interop import array_api as xp
    >>> xp.expm1(xp.asarray([0., 1e-5]))
    tensor([0.0000e+00, 1.0000e-05])
    """
    if x.dtype.is_complex:  # exp(x) - 1 = expm1(a) cos(b) - 2 sin²(b / 2) + i exp(a) sin(b)
        a, b = functions.real(x), functions.imag(x)
        real = functions.expm1(a) * functions.cos(b) - 2 * functions.sin(b / 2) ** 2 + 0.0
        imag = functions.where(b == 0, b, functions.exp(a) * functions.sin(b))
        low, high = a == -math.inf, (a == math.inf) & ((b == 0) | ~functions.isfinite(b))
        return functions.complex(functions.where(low, -1.0, functions.where(high, math.inf, real)),
                                 functions.where(low & ~functions.isfinite(b), 0.0, imag))
    return functions.expm1(x)


def floor(x: Tensor, /) -> Tensor:
    """The largest integer that is not greater, in the same dtype.

    >>> from flambeau.interop import array_api as xp
    >>> xp.floor(xp.asarray([0.5, -0.5]))
    tensor([ 0., -1.])
    """
    return functions.floor(x)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part.

    >>> from flambeau.interop import array_api as xp
    >>> xp.imag(xp.asarray([1+2j]))
    tensor([2.])
    """
    return functions.imag(x) if x.dtype.is_complex else functions.zeros_like(x)


def isfinite(x: Tensor, /) -> Tensor:
    """Whether elements are neither infinite nor NaN.

    >>> from flambeau.interop import array_api as xp
    >>> xp.isfinite(xp.asarray([1., float("inf")]))
    tensor([ True, False])
    """
    return functions.isfinite(x)


def isinf(x: Tensor, /) -> Tensor:
    """Whether elements are infinite.

    >>> from flambeau.interop import array_api as xp
    >>> xp.isinf(xp.asarray([1., float("inf")]))
    tensor([False,  True])
    """
    return functions.isinf(x)


def isnan(x: Tensor, /) -> Tensor:
    """Whether elements are NaN.

    >>> from flambeau.interop import array_api as xp
    >>> xp.isnan(xp.asarray([1., float("nan")]))
    tensor([False,  True])
    """
    return functions.isnan(x)


def log(x: Tensor, /) -> Tensor:
    """The natural logarithm.

    >>> from flambeau.interop import array_api as xp
    >>> xp.log(xp.asarray([1., 2.]))
    tensor([0.0000, 0.6931])
    """
    return functions.log(x)


def log1p(x: Tensor, /) -> Tensor:
    """log(1 + x), exact near 0.

    >>> from flambeau.interop import array_api as xp
    >>> xp.log1p(xp.asarray([0., 1e-5]))
    tensor([0.0000e+00, 9.9999e-06])
    """
    return functions.log1p(x)


def log2(x: Tensor, /) -> Tensor:
    """The logarithm to base 2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.log2(xp.asarray([1., 8.]))
    tensor([0., 3.])
    """
    return functions.log2(x)


def log10(x: Tensor, /) -> Tensor:
    """The logarithm to base 10.

    >>> from flambeau.interop import array_api as xp
    >>> xp.log10(xp.asarray([1., 100.]))
    tensor([0., 2.])
    """
    return functions.log10(x)


def logical_not(x: Tensor, /) -> Tensor:
    """The negation of booleans.

    >>> from flambeau.interop import array_api as xp
    >>> xp.logical_not(xp.asarray([True, False]))
    tensor([False,  True])
    """
    return functions.logical_not(x)


def negative(x: Tensor, /) -> Tensor:
    """The negative.

    >>> from flambeau.interop import array_api as xp
    >>> xp.negative(xp.asarray([1, -2]))
    tensor([-1,  2])
    """
    return functions.negative(x)


def positive(x: Tensor, /) -> Tensor:
    """The elements as they are.

    >>> from flambeau.interop import array_api as xp
    >>> xp.positive(xp.asarray([1, -2]))
    tensor([ 1, -2])
    """
    return functions.positive(x) if x.dtype is not dtypes.bool_ else x


def real(x: Tensor, /) -> Tensor:
    """The real part.

    >>> from flambeau.interop import array_api as xp
    >>> xp.real(xp.asarray([1+2j]))
    tensor([1.])
    """
    return functions.real(x)


def reciprocal(x: Tensor, /) -> Tensor:
    """1 / x.

    >>> from flambeau.interop import array_api as xp
    >>> xp.reciprocal(xp.asarray([2., 4.]))
    tensor([0.5000, 0.2500])
    """
    return functions.reciprocal(x)


def round(x: Tensor, /) -> Tensor:
    """The nearest integer, of two the even one, in the same dtype.

    >>> from flambeau.interop import array_api as xp
    >>> xp.round(xp.asarray([0.5, 1.5]))
    tensor([0., 2.])
    """
    if x.dtype.is_complex:
        return functions.complex(functions.round(functions.real(x)), functions.round(functions.imag(x)))
    return functions.round(x)


def sign(x: Tensor, /) -> Tensor:
    """The sign: -1, 0 or 1; x / |x| of complex numbers.

    >>> from flambeau.interop import array_api as xp
    >>> xp.sign(xp.asarray([-2., 0., 3.]))
    tensor([-1.,  0.,  1.])
    """
    if x.dtype.is_complex:
        return functions.sgn(x)
    out = functions.sign(x)
    return functions.where(functions.isnan(x), x, out) if x.dtype.is_floating_point else out


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign bit is set.

    >>> from flambeau.interop import array_api as xp
    >>> xp.signbit(xp.asarray([-0., 0.]))
    tensor([ True, False])
    """
    return functions.signbit(x)


def sin(x: Tensor, /) -> Tensor:
    """The sine.

    >>> from flambeau.interop import array_api as xp
    >>> xp.sin(xp.asarray([0., 1.]))
    tensor([0.0000, 0.8415])
    """
    return functions.sin(x)


def sinh(x: Tensor, /) -> Tensor:
    """The hyperbolic sine.

    >>> from flambeau.interop import array_api as xp
    >>> xp.sinh(xp.asarray([0., 1.]))
    tensor([0.0000, 1.1752])
    """
    return functions.sinh(x)


def sqrt(x: Tensor, /) -> Tensor:
    """The square root.

    >>> from flambeau.interop import array_api as xp
    >>> xp.sqrt(xp.asarray([4., 9.]))
    tensor([2., 3.])
    """
    return functions.sqrt(x)


def square(x: Tensor, /) -> Tensor:
    """x².

    >>> from flambeau.interop import array_api as xp
    >>> xp.square(xp.asarray([2., 3.]))
    tensor([4., 9.])
    """
    return functions.square(x)


def tan(x: Tensor, /) -> Tensor:
    """The tangent.

    >>> from flambeau.interop import array_api as xp
    >>> xp.tan(xp.asarray([0., 1.]))
    tensor([0.0000, 1.5574])
    """
    return functions.tan(x)


def tanh(x: Tensor, /) -> Tensor:
    """The hyperbolic tangent.

    >>> from flambeau.interop import array_api as xp
    >>> xp.tanh(xp.asarray([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return functions.tanh(x)


def trunc(x: Tensor, /) -> Tensor:
    """The integer part, in the same dtype.

    >>> from flambeau.interop import array_api as xp
    >>> xp.trunc(xp.asarray([1.5, -1.5]))
    tensor([ 1., -1.])
    """
    return functions.trunc(x)


def add(x1: Any, x2: Any, /) -> Tensor:
    """x1 + x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.add(xp.asarray([1, 2]), xp.asarray([10, 20]))
    tensor([11, 22])
    """
    x1, x2 = promoted(x1, x2)
    return functions.add(x1, x2)


def atan2(x1: Any, x2: Any, /) -> Tensor:
    """The angle of the points (x2, x1).

    >>> from flambeau.interop import array_api as xp
    >>> xp.atan2(xp.asarray([1., 0.]), xp.asarray([1., -1.]))
    tensor([0.7854, 3.1416])
    """
    x1, x2 = promoted(x1, x2)
    return functions.atan2(x1, x2)


def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """The bits that are set in both.

    >>> from flambeau.interop import array_api as xp
    >>> xp.bitwise_and(xp.asarray([6]), xp.asarray([3]))
    tensor([2])
    """
    x1, x2 = promoted(x1, x2)
    return functions.bitwise_and(x1, x2)


def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """The bits shifted to higher places.

    >>> from flambeau.interop import array_api as xp
    >>> xp.bitwise_left_shift(xp.asarray([1, 2]), xp.asarray([3, 1]))
    tensor([8, 4])
    """
    x1, x2 = promoted(x1, x2)
    return functions.bitwise_left_shift(x1, x2)


def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """The bits that are set in one or both.

    >>> from flambeau.interop import array_api as xp
    >>> xp.bitwise_or(xp.asarray([6]), xp.asarray([3]))
    tensor([7])
    """
    x1, x2 = promoted(x1, x2)
    return functions.bitwise_or(x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """The bits shifted to lower places.

    >>> from flambeau.interop import array_api as xp
    >>> xp.bitwise_right_shift(xp.asarray([8, 4]), xp.asarray([3, 1]))
    tensor([1, 2])
    """
    x1, x2 = promoted(x1, x2)
    return functions.bitwise_right_shift(x1, x2)


def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """The bits that are set in one only.

    >>> from flambeau.interop import array_api as xp
    >>> xp.bitwise_xor(xp.asarray([6]), xp.asarray([3]))
    tensor([5])
    """
    x1, x2 = promoted(x1, x2)
    return functions.bitwise_xor(x1, x2)


def copysign(x1: Any, x2: Any, /) -> Tensor:
    """The magnitude of x1 with the sign of x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.copysign(xp.asarray([1., 2.]), xp.asarray([-1., 1.]))
    tensor([-1.,  2.])
    """
    x1, x2 = promoted(x1, x2)
    return functions.copysign(x1, x2)


def divide(x1: Any, x2: Any, /) -> Tensor:
    """x1 / x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.divide(xp.asarray([1., 2.]), xp.asarray([4., 4.]))
    tensor([0.2500, 0.5000])
    """
    x1, x2 = promoted(x1, x2)
    return functions.div(x1, x2)


def equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether elements are equal.

    >>> from flambeau.interop import array_api as xp
    >>> xp.equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
    tensor([ True, False])
    """
    x1, x2 = promoted(x1, x2)
    return functions.eq(x1, x2)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotient rounded toward negative infinity.

    >>> from flambeau.interop import array_api as xp
    >>> xp.floor_divide(xp.asarray([7, -7]), xp.asarray([2, 2]))
    tensor([ 3, -4])
    """
    x1, x2 = promoted(x1, x2)
    out = functions.floor_divide(x1, x2)
    if out.dtype.is_floating_point:  # PyTorch's results at infinities are NaN and -1
        out = functions.where(functions.isinf(x1) | functions.isinf(x2), x1 / x2, out)
    return out


def greater(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 > x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.greater(xp.asarray([1, 2]), xp.asarray([1, 1]))
    tensor([False,  True])
    """
    x1, x2 = promoted(x1, x2)
    return functions.greater(x1, x2)


def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 ≥ x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.greater_equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
    tensor([ True, False])
    """
    x1, x2 = promoted(x1, x2)
    return functions.greater_equal(x1, x2)


def hypot(x1: Any, x2: Any, /) -> Tensor:
    """√(x1² + x2²) without overflow.

    >>> from flambeau.interop import array_api as xp
    >>> xp.hypot(xp.asarray([3.]), xp.asarray([4.]))
    tensor([5.])
    """
    x1, x2 = promoted(x1, x2)
    return functions.hypot(x1, x2)


def less(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 < x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.less(xp.asarray([1, 2]), xp.asarray([1, 3]))
    tensor([False,  True])
    """
    x1, x2 = promoted(x1, x2)
    return functions.less(x1, x2)


def less_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 ≤ x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.less_equal(xp.asarray([1, 2]), xp.asarray([1, 1]))
    tensor([ True, False])
    """
    x1, x2 = promoted(x1, x2)
    return functions.less_equal(x1, x2)


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """log(exp(x1) + exp(x2)).

    >>> from flambeau.interop import array_api as xp
    >>> xp.logaddexp(xp.asarray([0.]), xp.asarray([0.]))
    tensor([0.6931])
    """
    x1, x2 = promoted(x1, x2)
    return functions.logaddexp(x1, x2)


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both hold.

    >>> from flambeau.interop import array_api as xp
    >>> xp.logical_and(xp.asarray([True, True]), xp.asarray([True, False]))
    tensor([ True, False])
    """
    x1, x2 = promoted(x1, x2)
    return functions.logical_and(x1, x2)


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether one of both holds.

    >>> from flambeau.interop import array_api as xp
    >>> xp.logical_or(xp.asarray([False, True]), xp.asarray([False, False]))
    tensor([False,  True])
    """
    x1, x2 = promoted(x1, x2)
    return functions.logical_or(x1, x2)


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether one only holds.

    >>> from flambeau.interop import array_api as xp
    >>> xp.logical_xor(xp.asarray([True, True]), xp.asarray([True, False]))
    tensor([False,  True])
    """
    x1, x2 = promoted(x1, x2)
    return functions.logical_xor(x1, x2)


def maximum(x1: Any, x2: Any, /) -> Tensor:
    """The greater element; NaN if one is.

    >>> from flambeau.interop import array_api as xp
    >>> xp.maximum(xp.asarray([1, 5]), xp.asarray([3, 2]))
    tensor([3, 5])
    """
    x1, x2 = promoted(x1, x2)
    return functions.maximum(x1, x2)


def minimum(x1: Any, x2: Any, /) -> Tensor:
    """The smaller element; NaN if one is.

    >>> from flambeau.interop import array_api as xp
    >>> xp.minimum(xp.asarray([1, 5]), xp.asarray([3, 2]))
    tensor([1, 2])
    """
    x1, x2 = promoted(x1, x2)
    return functions.minimum(x1, x2)


def multiply(x1: Any, x2: Any, /) -> Tensor:
    """x1 · x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.multiply(xp.asarray([1, 2]), xp.asarray([10, 20]))
    tensor([10, 40])
    """
    x1, x2 = promoted(x1, x2)
    return functions.mul(x1, x2)


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next representable number after x1 toward x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.nextafter(xp.asarray([1.]), xp.asarray([2.]))
    tensor([1.0000])
    """
    x1, x2 = promoted(x1, x2)
    return functions.nextafter(x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether elements differ.

    >>> from flambeau.interop import array_api as xp
    >>> xp.not_equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
    tensor([False,  True])
    """
    x1, x2 = promoted(x1, x2)
    return functions.ne(x1, x2)


def pow(x1: Any, x2: Any, /) -> Tensor:
    """x1 to the power x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.pow(xp.asarray([2., 3.]), xp.asarray([3., 2.]))
    tensor([8., 9.])
    """
    x1, x2 = promoted(x1, x2)
    return functions.pow(x1, x2)


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """The remainder of `floor_divide`, with the sign of x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.remainder(xp.asarray([7, -7]), xp.asarray([2, 2]))
    tensor([1, 1])
    """
    x1, x2 = promoted(x1, x2)
    out = functions.remainder(x1, x2)
    if out.dtype.is_floating_point:  # zeros have the sign of the divisor
        out = functions.where((out == 0) & (x2 != 0), functions.copysign(functions.zeros_like(out), x2), out)
    return out


def subtract(x1: Any, x2: Any, /) -> Tensor:
    """x1 - x2.

    >>> from flambeau.interop import array_api as xp
    >>> xp.subtract(xp.asarray([1, 2]), xp.asarray([10, 20]))
    tensor([ -9, -18])
    """
    x1, x2 = promoted(x1, x2)
    return functions.sub(x1, x2)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements limited to at least `min` and at most `max`, which are arrays, numbers or None; in the array's dtype.

    >>> from flambeau.interop import array_api as xp
    >>> xp.clip(xp.asarray([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    limits = [each.to(x.dtype) if isinstance(each, Tensor) else None if each is None else functions.tensor(
        each, dtype=x.dtype) for each in (min, max)]
    if limits[0] is limits[1] is None:
        return functions.clone(x)
    return functions.clamp(x, *limits)
