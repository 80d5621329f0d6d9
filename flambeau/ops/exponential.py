"""Exponentials, logarithms and roots."""

from __future__ import annotations

from .declare import elementwise


@elementwise(promote="float")
def exp(xp, input):
    """The exponential of each element.

    >>> import flambeau as torch
    >>> torch.exp(torch.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """
    return xp.exp(input)


exp.vjp(input=lambda g, out: g * out)  # exp' is exp: only the result is kept


@elementwise(promote="float")
def log(xp, input):
    """The natural logarithm of each element.

    >>> import flambeau as torch
    >>> torch.log(torch.tensor([1., 2.]))
    tensor([0.0000, 0.6931])
    """
    return xp.log(input)


log.vjp(input=lambda g, input: g / input)


@elementwise(promote="float")
def sqrt(xp, input):
    """The square root of each element.

    >>> import flambeau as torch
    >>> torch.sqrt(torch.tensor([4., 9.]))
    tensor([2., 3.])
    """
    return xp.sqrt(input)


sqrt.vjp(input=lambda g, out: g / (2 * out))
