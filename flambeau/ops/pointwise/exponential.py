"""Exponentials, logarithms and roots."""

from __future__ import annotations

from math import log as _ln

from ..declare import elementwise, not_implemented

LN_2, LN_10 = _ln(2), _ln(10)


@elementwise(promote="float")
def exp(xp, input):
    """The exponential, eˣ.

    >>> import flambeau as torch
    >>> torch.exp(torch.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """
    return xp.exp(input)


exp.vjp(input=lambda g, out: g * out)  # only the result is saved


@elementwise(promote="float")
def exp2(xp, input):
    """The power of two, 2ˣ.

    >>> import flambeau as torch
    >>> torch.exp2(torch.tensor([0., 1., 3.]))
    tensor([1., 2., 8.])
    """
    return xp.exp2(input)


exp2.vjp(input=lambda g, out: g * (out * LN_2))


@elementwise(promote="float")
def expm1(xp, input):
    """eˣ - 1, accurate for small x.

    >>> import flambeau as torch
    >>> torch.expm1(torch.tensor([0., 1.]))
    tensor([0.0000, 1.7183])
    """
    return xp.expm1(input)


expm1.vjp(input=lambda g, out: g * (out + 1))


@elementwise(promote="float")
def log(xp, input):
    """The natural logarithm.

    >>> import flambeau as torch
    >>> torch.log(torch.tensor([1., 2.]))
    tensor([0.0000, 0.6931])
    """
    return xp.log(input)


log.vjp(input=lambda g, input: g / input)


@elementwise(promote="float")
def log2(xp, input):
    """The logarithm to base 2.

    >>> import flambeau as torch
    >>> torch.log2(torch.tensor([1., 8.]))
    tensor([0., 3.])
    """
    return xp.log2(input)


log2.vjp(input=lambda g, input: g / (input * LN_2))


@elementwise(promote="float")
def log10(xp, input):
    """The logarithm to base 10.

    >>> import flambeau as torch
    >>> torch.log10(torch.tensor([1., 1000.]))
    tensor([0., 3.])
    """
    return xp.log10(input)


log10.vjp(input=lambda g, input: g / (input * LN_10))


@elementwise(promote="float", node="Log1PBackward0")
def log1p(xp, input):
    """log(1 + x), accurate for small x.

    >>> import flambeau as torch
    >>> torch.log1p(torch.tensor([0., 1.]))
    tensor([0.0000, 0.6931])
    """
    return xp.log1p(input)


log1p.vjp(input=lambda g, input: g / (input + 1))


@elementwise(promote="float")
def sqrt(xp, input):
    """The square root.

    >>> import flambeau as torch
    >>> torch.sqrt(torch.tensor([4., 9.]))
    tensor([2., 3.])
    """
    return xp.sqrt(input)


sqrt.vjp(input=lambda g, out: g / (2 * out))


@elementwise(promote="float")
def rsqrt(xp, input):
    """The reciprocal of the square root.

    >>> import flambeau as torch
    >>> torch.rsqrt(torch.tensor([4., 16.]))
    tensor([0.5000, 0.2500])
    """
    return xp.rsqrt(input)


rsqrt.vjp(input=lambda g, out: g * (-0.5 * (out * out * out)))


@elementwise(promote="float")
def sigmoid(xp, input):
    """The logistic function, 1 / (1 + e⁻ˣ).

    >>> import flambeau as torch
    >>> torch.sigmoid(torch.tensor([0., 2.]))
    tensor([0.5000, 0.8808])
    """
    return xp.sigmoid(input)


sigmoid.vjp(input=lambda g, out: g * ((1 - out) * out))


@elementwise(promote="float", unsupported_dtypes=not_implemented("logit_cpu", "complex"))
def logit(xp, input, *, eps=None):
    """The inverse of the logistic function, log(x / (1 - x)).

    Args:
        eps: clamp x to [eps, 1 - eps] first. None: elements outside [0, 1] give nan.

    >>> import flambeau as torch
    >>> torch.logit(torch.tensor([0.5, 0.8808]))
    tensor([0.0000, 2.0000])
    """
    if eps is not None:
        input = xp.where(input < eps, eps, xp.where(input > 1 - eps, 1 - eps, input))
    return xp.log(input / (1 - input))


def _logit_vjp(xp, g, input, eps):
    low, outside = (0, float("nan")) if eps is None or eps < 0 else (eps, 0)
    return xp.where(xp.logical_or(input < low, input > 1 - low), outside, g / (input * (1 - input)))


logit.vjp(input=_logit_vjp)


@elementwise(scalar_inputs=(), unsupported_dtypes=not_implemented("logaddexp_cpu", "bool", "integer"),
             expose=("torch", "method"))
def logaddexp(xp, input, other):
    """log(eˣ + eʸ), without overflow.

    >>> import flambeau as torch
    >>> torch.logaddexp(torch.tensor([0., 99.]), torch.tensor([0., 99.]))
    tensor([ 0.6931, 99.6931])
    """
    return xp.logaddexp(input, other)


logaddexp.vjp(input=lambda xp, g, input, other: g / (1 + xp.exp(other - input)),
              other=lambda xp, g, input, other: g / (1 + xp.exp(input - other)))


@elementwise(scalar_inputs=(), unsupported_dtypes=not_implemented("logaddexp2_cpu", "bool", "integer", "complex"),
             expose=("torch", "method"))
def logaddexp2(xp, input, other):
    """log₂(2ˣ + 2ʸ), without overflow.

    >>> import flambeau as torch
    >>> torch.logaddexp2(torch.tensor([0., 99.]), torch.tensor([0., 99.]))
    tensor([  1., 100.])
    """
    return xp.logaddexp2(input, other)


logaddexp2.vjp(input=lambda xp, g, input, other: g / (1 + xp.exp2(other - input)),
               other=lambda xp, g, input, other: g / (1 + xp.exp2(input - other)))


def _check_ldexp(input, other):
    if other.dtype.name == "bool" and input.dtype.is_floating_point:
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")


@elementwise(promote="float", scalar_inputs=(), unrounded=("other",), check=_check_ldexp)
def ldexp(xp, input, other):
    """input · 2ʸ.

    >>> import flambeau as torch
    >>> torch.ldexp(torch.tensor([1., 3.]), torch.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """
    return input * xp.exp2(other)


ldexp.vjp(input=lambda xp, g, out, other: g * xp.exp2(other),  # saves the result, as PyTorch's node does
          other=lambda g, out: g * (out * LN_2))


@elementwise(outputs=("mantissa", "exponent"), expose=("torch", "method"), unsupported_dtypes=dict.fromkeys(
    ("bool", "integer", "complex"), RuntimeError("torch.frexp() only supports floating-point dtypes")),
    exact_out=("torch.frexp() expects mantissa to have dtype {result_c} but got {out_c}",
               "torch.frexp() expects exponent to have int dtype but got {out_c}"))
def frexp(xp, input):
    """Mantissas with magnitudes in [0.5, 1), and integer exponents: x = mantissa · 2^exponent.

    >>> import flambeau as torch
    >>> torch.frexp(torch.tensor([8., 3.]))
    flambeau.return_types.frexp(
    mantissa=tensor([0.5000, 0.7500]),
    exponent=tensor([4, 2], dtype=flambeau.int32))
    """
    return xp.frexp(input)


frexp.vjp(input=lambda xp, g0, exponent: g0 / xp.exp2(xp.to(exponent, g0.dtype)))
frexp.jvp(lambda xp, t_input, exponent: (t_input / xp.exp2(xp.to(exponent, t_input.dtype)), None))
