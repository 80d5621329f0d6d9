"""Rounding to integers, and fractional parts."""

from __future__ import annotations

from ..declare import FOUND_DTYPE, elementwise, not_implemented


def _unsupported(name):
    return not_implemented(f"{name}_vml_cpu", "bool") | {
        "complex": NotImplementedError(f"{name} is not supported for complex inputs")}


@elementwise(unsupported_dtypes=_unsupported("floor"), exact_out=FOUND_DTYPE)
def floor(xp, input):
    """The largest integer ≤ x, ⌊x⌋.

    >>> import flambeau as torch
    >>> torch.floor(torch.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    return xp.floor(input)


@elementwise(unsupported_dtypes=_unsupported("ceil"), exact_out=FOUND_DTYPE)
def ceil(xp, input):
    """The smallest integer ≥ x, ⌈x⌉.

    >>> import flambeau as torch
    >>> torch.ceil(torch.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    return xp.ceil(input)


@elementwise(aliases=("fix",), unsupported_dtypes=_unsupported("trunc"), exact_out=FOUND_DTYPE)
def trunc(xp, input):
    """x rounded towards zero.

    >>> import flambeau as torch
    >>> torch.trunc(torch.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    return xp.trunc(input)


@elementwise(unsupported_dtypes=not_implemented("round_vml_cpu", "bool", "complex"), exact_out=FOUND_DTYPE)
def round(xp, input):
    """The nearest integer; ties go to the even one.

    >>> import flambeau as torch
    >>> torch.round(torch.tensor([0.5, 1.5, -2.7]))
    tensor([ 0.,  2., -3.])
    """
    return xp.round(input)


@elementwise(name="round", key="_round_decimals", node="RoundBackward1", expose=(),
             unsupported_dtypes=not_implemented("round_cpu", "bool", "integer", "complex"), exact_out=FOUND_DTYPE)
def round_decimals(xp, input, *, decimals):
    """The nearest multiple of 10⁻ᵈ."""
    scale = 10.0 ** (decimals if decimals >= 0 else -decimals)
    return xp.round(input * scale) / scale if decimals >= 0 else xp.round(input / scale) * scale


for _op in (floor, ceil, trunc, round, round_decimals):  # constant almost everywhere
    _op.vjp(input=lambda xp, g: xp.zeros_like(g))


@elementwise(unsupported_dtypes=not_implemented("frac_cpu", "bool", "integer", "complex"), exact_out=FOUND_DTYPE)
def frac(xp, input):
    """The fractional part, x - trunc(x).

    >>> import flambeau as torch
    >>> torch.frac(torch.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """
    return input - xp.trunc(input)


frac.vjp(input=lambda g: g)
