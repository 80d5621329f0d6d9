"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from math import pi

from ..declare import elementwise, not_implemented


@elementwise(promote="float")
def sin(xp, input):
    """The sine of an angle in radians.

    >>> import flambeau as torch
    >>> torch.sin(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8415])
    """
    return xp.sin(input)


sin.vjp(input=lambda xp, g, input: g * xp.cos(input))


@elementwise(promote="float")
def cos(xp, input):
    """The cosine of an angle in radians.

    >>> import flambeau as torch
    >>> torch.cos(torch.tensor([0., 1.]))
    tensor([1.0000, 0.5403])
    """
    return xp.cos(input)


cos.vjp(input=lambda xp, g, input: -(g * xp.sin(input)))


@elementwise(promote="float")
def tan(xp, input):
    """The tangent of an angle in radians.

    >>> import flambeau as torch
    >>> torch.tan(torch.tensor([0., 1.]))
    tensor([0.0000, 1.5574])
    """
    return xp.tan(input)


tan.vjp(input=lambda g, out: g * (1 + out * out))


@elementwise(promote="float", aliases=("arcsin",))
def asin(xp, input):
    """The inverse sine, in radians.

    >>> import flambeau as torch
    >>> torch.asin(torch.tensor([0., 1.]))
    tensor([0.0000, 1.5708])
    """
    return xp.asin(input)


asin.vjp(input=lambda xp, g, input: g * xp.rsqrt(1 - input * input))


@elementwise(promote="float", aliases=("arccos",))
def acos(xp, input):
    """The inverse cosine, in radians.

    >>> import flambeau as torch
    >>> torch.acos(torch.tensor([0., 1.]))
    tensor([1.5708, 0.0000])
    """
    return xp.acos(input)


acos.vjp(input=lambda xp, g, input: -(g * xp.rsqrt(1 - input * input)))


@elementwise(promote="float", aliases=("arctan",))
def atan(xp, input):
    """The inverse tangent, in radians.

    >>> import flambeau as torch
    >>> torch.atan(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7854])
    """
    return xp.atan(input)


atan.vjp(input=lambda g, input: g / (input * input + 1))


@elementwise(promote="float", aliases=("arctan2",), scalar_inputs=(),
             unsupported_dtypes=not_implemented("atan2_cpu", "complex"))
def atan2(xp, input, other):
    """The angle of the point (x, y) = (other, input) in radians, in (-π, π].

    >>> import flambeau as torch
    >>> torch.atan2(torch.tensor([1., -1.]), torch.tensor([1., -1.]))
    tensor([ 0.7854, -2.3562])
    """
    return xp.atan2(input, other)


def _atan2_vjp(xp, coordinate, input, other):
    # the gradient at the origin is 0, as in PyTorch
    square = input * input + other * other
    return xp.where(square == 0, 0, coordinate / square)


atan2.vjp(input=lambda xp, g, input, other: g * _atan2_vjp(xp, other, input, other),
          other=lambda xp, g, input, other: -(g * _atan2_vjp(xp, input, input, other)))


@elementwise(promote="float")
def sinh(xp, input):
    """The hyperbolic sine.

    >>> import flambeau as torch
    >>> torch.sinh(torch.tensor([0., 1.]))
    tensor([0.0000, 1.1752])
    """
    return xp.sinh(input)


sinh.vjp(input=lambda xp, g, input: g * xp.cosh(input))


@elementwise(promote="float")
def cosh(xp, input):
    """The hyperbolic cosine.

    >>> import flambeau as torch
    >>> torch.cosh(torch.tensor([0., 1.]))
    tensor([1.0000, 1.5431])
    """
    return xp.cosh(input)


cosh.vjp(input=lambda xp, g, input: g * xp.sinh(input))


@elementwise(promote="float")
def tanh(xp, input):
    """The hyperbolic tangent.

    >>> import flambeau as torch
    >>> torch.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return xp.tanh(input)


tanh.vjp(input=lambda g, out: g * (1 - out * out))


@elementwise(promote="float", aliases=("arcsinh",))
def asinh(xp, input):
    """The inverse hyperbolic sine.

    >>> import flambeau as torch
    >>> torch.asinh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8814])
    """
    return xp.asinh(input)


asinh.vjp(input=lambda xp, g, input: g * xp.rsqrt(input * input + 1))
asinh.in_place_node("AsinhBackward1")


@elementwise(promote="float", aliases=("arccosh",))
def acosh(xp, input):
    """The inverse hyperbolic cosine; nan below 1.

    >>> import flambeau as torch
    >>> torch.acosh(torch.tensor([1., 2.]))
    tensor([0.0000, 1.3170])
    """
    return xp.acosh(input)


def _acosh_vjp(xp, g, input):
    if xp.is_complex(input):  # the square root of the product has another branch cut
        return g * (xp.rsqrt(input - 1) * xp.rsqrt(input + 1))
    return g * xp.rsqrt(input * input - 1)


acosh.vjp(input=_acosh_vjp)
acosh.in_place_node("AcoshBackward1")


@elementwise(promote="float", aliases=("arctanh",))
def atanh(xp, input):
    """The inverse hyperbolic tangent; nan outside [-1, 1].

    >>> import flambeau as torch
    >>> torch.atanh(torch.tensor([0., 0.5]))
    tensor([0.0000, 0.5493])
    """
    return xp.atanh(input)


atanh.vjp(input=lambda g, input: g / (1 - input * input))
atanh.in_place_node("AtanhBackward1")


@elementwise(scalar_inputs=(), unsupported_dtypes=not_implemented("hypot_cpu", "bool", "integer", "complex"))
def hypot(xp, input, other):
    """The length of the vector (input, other), √(x² + y²).

    >>> import flambeau as torch
    >>> torch.hypot(torch.tensor([3.]), torch.tensor([4.]))
    tensor([5.])
    """
    return xp.hypot(input, other)


hypot.vjp(input=lambda g, input, out: g * (input / out),
          other=lambda g, other, out: g * (other / out))


@elementwise(promote="float")
def sinc(xp, input):
    """sin(πx) / πx, and 1 at 0.

    >>> import flambeau as torch
    >>> torch.sinc(torch.tensor([0., 0.5]))
    tensor([1.0000, 0.6366])
    """
    scaled = pi * input
    return xp.where(input == 0, 1, xp.sin(scaled) / scaled)


def _sinc_vjp(xp, g, input):
    scaled = pi * input
    slope = (xp.cos(scaled) * scaled - xp.sin(scaled)) / (scaled * input)
    return g * xp.where(input * input == 0, 0, slope)  # also where the square underflows to 0


sinc.vjp(input=_sinc_vjp)


@elementwise(promote="float", node="Deg2RadBackward0",
             unsupported_dtypes={"complex": RuntimeError("deg2rad is not supported for complex tensors.")})
def deg2rad(input):
    """Degrees as radians.

    >>> import flambeau as torch
    >>> torch.deg2rad(torch.tensor([180., 90.]))
    tensor([3.1416, 1.5708])
    """
    return input * (pi / 180)


deg2rad.vjp(input=lambda g: g * (pi / 180))


@elementwise(promote="float", node="Rad2DegBackward0",
             unsupported_dtypes={"complex": RuntimeError("rad2deg is not supported for complex tensors.")})
def rad2deg(input):
    """Radians as degrees.

    >>> import flambeau as torch
    >>> torch.rad2deg(torch.tensor([3.14159265, 1.]))
    tensor([180.0000,  57.2958])
    """
    return input * (180 / pi)


rad2deg.vjp(input=lambda g: g * (180 / pi))
