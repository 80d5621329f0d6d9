"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from .declare import elementwise


@elementwise(promote="float")
def sin(xp, input):
    """The sine of each element, in radians.

    >>> import flambeau as torch
    >>> torch.sin(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8415])
    """
    return xp.sin(input)


sin.vjp(input=lambda xp, g, input: g * xp.cos(input))


@elementwise(promote="float")
def cos(xp, input):
    """The cosine of each element, in radians.

    >>> import flambeau as torch
    >>> torch.cos(torch.tensor([0., 1.]))
    tensor([1.0000, 0.5403])
    """
    return xp.cos(input)


cos.vjp(input=lambda xp, g, input: -(g * xp.sin(input)))


@elementwise(promote="float")
def tanh(xp, input):
    """The hyperbolic tangent of each element.

    >>> import flambeau as torch
    >>> torch.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return xp.tanh(input)


tanh.vjp(input=lambda g, out: g * (1 - out * out))
