"""Arithmetic: sums, products, quotients, remainders, powers, absolute values and signs."""

from __future__ import annotations

from typing import Any

from ...backends.numpy.memory import scalar_operand
from ...dtypes import bool_
from ..declare import FOUND_DTYPE, composite, elementwise, not_implemented

NO_DIFFERENCE = {"bool": RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
                                      "`^` or `logical_xor()` operator instead.")}
_BOTH = ("input", "other")


def no_bool_operand(input: Any, other: Any) -> None:
    """Raise PyTorch's error for the subtraction of a bool and another dtype."""
    bools = [isinstance(x, bool) or getattr(x, "dtype", None) is bool_ for x in (input, other)]
    if bools[0] != bools[1]:
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
                           "invert a mask, use the `~` or `logical_not()` operator instead.")


@elementwise(scalar_inputs=_BOTH)
def add(input, other):
    """The sum, input + other.

    >>> import flambeau as torch
    >>> torch.add(torch.tensor([1., 2.]), 3)
    tensor([4., 5.])
    """
    return input + other


add.vjp(input=lambda g: g,
        other=lambda g: g)


@elementwise(name="add", key="_add_scaled", node="AddBackward0", expose=(), scalar_inputs=_BOTH)
def add_scaled(input, other, *, alpha):
    """input + alpha · other."""
    return input + alpha * other


add_scaled.vjp(input=lambda g: g,
               other=lambda g, alpha: g * alpha)


@elementwise(scalar_inputs=_BOTH, check=no_bool_operand, unsupported_dtypes=NO_DIFFERENCE)
def sub(input, other):
    """The difference, input - other.

    >>> import flambeau as torch
    >>> torch.sub(torch.tensor([1., 2.]), 3)
    tensor([-2., -1.])
    """
    return input - other


sub.vjp(input=lambda g: g,
        other=lambda g: -g)


@elementwise(name="sub", key="_sub_scaled", node="SubBackward0", expose=(), scalar_inputs=_BOTH, check=no_bool_operand,
             unsupported_dtypes=NO_DIFFERENCE)
def sub_scaled(input, other, *, alpha):
    """input - alpha · other."""
    return input - alpha * other


sub_scaled.vjp(input=lambda g: g,
               other=lambda g, alpha: -(g * alpha))


@elementwise(name="rsub", key="_rsub", node="RsubBackward0", expose=(), check=no_bool_operand,
             unsupported_dtypes=NO_DIFFERENCE)
def rsub(input, other, *, alpha=1):
    """other - alpha · input."""
    return other - (input if alpha == 1 else alpha * input)


rsub.vjp(input=lambda g, alpha: -(g if alpha == 1 else g * alpha),
         other=lambda g: g)


@elementwise(name="rsub", key="_rsub_scalar", node="RsubBackward1", expose=(), promoting_params=("other",),
             unsupported_dtypes=NO_DIFFERENCE)
def rsub_scalar(input, *, other, alpha=1):
    """other - alpha · input, with a scalar `other`."""
    return other - (input if alpha == 1 else alpha * input)


rsub_scalar.vjp(input=lambda g, alpha: -(g if alpha == 1 else g * alpha))


@elementwise(aliases=("multiply",), scalar_inputs=_BOTH, unrounded=("other",))
def mul(input, other):
    """The product, input · other.

    >>> import flambeau as torch
    >>> torch.mul(torch.tensor([1., 2.]), 3)
    tensor([3., 6.])
    """
    return input * other


mul.vjp(input=lambda g, other: g * other,
        other=lambda g, input: g * input)


@elementwise(promote="float", scalar_inputs=_BOTH, unrounded=("other",))
def div(input, other):
    """The quotient, input / other.

    >>> import flambeau as torch
    >>> torch.div(torch.tensor([1, 2]), 4)
    tensor([0.2500, 0.5000])
    """
    return input / other


div.vjp(input=lambda g, other: g / other,
        other=lambda g, input, other: -(g * ((input / other) / other)))


def _div_jvp(out, t_input, t_other, other):
    """(dx - out · dy) / y."""
    if t_other is None:
        return t_input / other
    change = t_other * out
    return (-change if t_input is None else t_input - change) / other


div.jvp(_div_jvp)


@elementwise(name="div", key="_div_rounded", node="DivBackward2", expose=(), scalar_inputs=_BOTH, unrounded=("other",),
             unsupported_dtypes=not_implemented("div_trunc_cpu", "bool", "complex"))
def div_rounded(xp, input, other, *, rounding_mode):
    """input / other, rounded towards zero."""
    return xp.trunc_divide(input, other)


@elementwise(name="div", key="_div_rounded_twice", node="DivBackward2", expose=(), scalar_inputs=_BOTH, opmath=False)
def div_rounded_twice(xp, input, other, *, rounding_mode):
    """input / other of float16 or bfloat16 tensors of several elements: rounded to the dtype, then towards zero."""
    return xp.trunc_divide_narrow(input, other)


@elementwise(name="div", key="_div_floored", node="DivBackward2", expose=(), scalar_inputs=_BOTH, unrounded=("other",),
             unsupported_dtypes=not_implemented("div_floor_cpu", "bool", "complex"))
def div_floored(xp, input, other, *, rounding_mode):
    """input / other, rounded down."""
    return xp.floor_divide(input, other)


for _rounded in (div_rounded, div_rounded_twice, div_floored):
    _rounded.vjp(input=lambda xp, g, input, rounding_mode: xp.zeros_like(g),
                 other=lambda xp, g, other, rounding_mode: xp.zeros_like(g))


def _not_differentiable(name):
    def rule(g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")
    return rule


@elementwise(scalar_inputs=_BOTH, unrounded=("other",), node="torch::autograd::NotImplemented",
             unsupported_dtypes=not_implemented("div_floor_cpu", "bool", "complex"))
def floor_divide(xp, input, other):
    """The quotient rounded down, ⌊input / other⌋.

    >>> import flambeau as torch
    >>> torch.floor_divide(torch.tensor([-7, 7]), 2)
    tensor([-4,  3])
    """
    return xp.floor_divide(input, other)


floor_divide.vjp(input=_not_differentiable("floor_divide"),
                 other=_not_differentiable("floor_divide"))


@elementwise(node="RemainderBackward1", scalar_inputs=(),
             unsupported_dtypes=not_implemented("remainder_cpu", "bool", "complex"))
def remainder(xp, input, other):
    """The remainder of floor division, input - other · ⌊input / other⌋; it has the sign of `other`.

    >>> import flambeau as torch
    >>> torch.remainder(torch.tensor([-3., 3.]), 2)
    tensor([1., 1.])
    """
    return xp.remainder(input, other)


remainder.vjp(input=lambda g: g,
              other=lambda xp, g, input, other: -(g * xp._div_floored(input, other, rounding_mode="floor")))


@elementwise(name="remainder", key="_remainder_scalar", node="RemainderBackward0", expose=(),
             promoting_params=("other",), unsupported_dtypes=not_implemented("remainder_cpu", "bool", "complex"))
def remainder_scalar(xp, input, *, other):
    """`remainder` with a scalar divisor."""
    return xp.remainder(input, other)


remainder_scalar.vjp(input=lambda g: g)
remainder.scalar_overload("other", remainder_scalar)


@elementwise(name="remainder", key="_scalar_remainder", node="torch::autograd::NotImplemented", expose=(),
             promoting_params=("input",), argument_order=("input", "other"),
             unsupported_dtypes=not_implemented("remainder_cpu", "bool", "complex"))
def scalar_remainder(xp, other, *, input):
    """`remainder` with a scalar dividend."""
    return xp.remainder(input, other)


scalar_remainder.vjp(other=_not_differentiable("remainder"))


@elementwise(node="FmodBackward1", scalar_inputs=(), unsupported_dtypes=not_implemented("fmod_cpu", "bool", "complex"))
def fmod(xp, input, other):
    """The remainder of truncated division, input - other · trunc(input / other); it has the sign of `input`.

    >>> import flambeau as torch
    >>> torch.fmod(torch.tensor([-3., 3.]), 2)
    tensor([-1.,  1.])
    """
    return xp.fmod(input, other)


fmod.vjp(input=lambda g: g,
         other=lambda xp, g, input, other: -(g * xp._div_rounded(input, other, rounding_mode="trunc")))


@elementwise(name="fmod", key="_fmod_scalar", node="FmodBackward0", expose=(), promoting_params=("other",),
             unsupported_dtypes=not_implemented("fmod_cpu", "bool", "complex"))
def fmod_scalar(xp, input, *, other):
    """`fmod` with a scalar divisor."""
    return xp.fmod(input, other)


fmod_scalar.vjp(input=lambda g: g)
fmod.scalar_overload("other", fmod_scalar)


@elementwise(aliases=("negative",), exact_out=FOUND_DTYPE, unsupported_dtypes={"bool": RuntimeError(
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` "
    "or `logical_not()` operator instead.")})
def neg(input):
    """The negative, -input.

    >>> import flambeau as torch
    >>> torch.neg(torch.tensor([1., -2.]))
    tensor([-1.,  2.])
    """
    return -input


neg.vjp(input=lambda g: -g)


@elementwise(promote="float")
def reciprocal(xp, input):
    """The reciprocal, 1 / input.

    >>> import flambeau as torch
    >>> torch.reciprocal(torch.tensor([2., 4.]))
    tensor([0.5000, 0.2500])
    """
    return xp.reciprocal(input)


reciprocal.vjp(input=lambda g, out: -(g * (out * out)))


# ----- powers -----

@elementwise(node="PowBackward1", scalar_inputs=(), unsupported_dtypes=not_implemented("pow", "bool"))
def pow(xp, input, exponent):
    """The power, input ** exponent.

    >>> import flambeau as torch
    >>> torch.pow(torch.tensor([2., 3.]), torch.tensor([3., 2.]))
    tensor([8., 9.])
    """
    return xp.pow(input, exponent)


def _pow_vjp_input(xp, g, input, exponent):
    # at exponent 0 the power is constant, also where input ** -1 is infinite
    slope = exponent * xp.pow(input, exponent - 1)
    return xp.where(exponent == 0, 0, g * slope)


def _pow_vjp_exponent(xp, g, input, exponent, exponent_dtype, out):
    # 0 ** exponent is constantly 0 for positive exponents
    constant = xp.logical_and(input == 0, xp.real(exponent) >= 0)
    base = input + 0j if exponent_dtype.is_complex else input  # a negative base has a complex logarithm
    return xp.where(constant, 0, g * (out * xp.log(base)))


pow.vjp(input=_pow_vjp_input,
        exponent=_pow_vjp_exponent)


@elementwise(name="pow", key="_pow_scalar", node="PowBackward0", expose=(), promoting_params=("exponent",))
def pow_scalar(xp, input, *, exponent):
    """input ** exponent, with a scalar exponent."""
    return xp.pow_scalar(input, exponent)


def _pow_scalar_vjp(xp, g, input, exponent):
    if exponent == 0:
        return xp.zeros_like(g)
    if exponent == 2:
        return g * (input + input)
    return g * (exponent * xp.pow(input, exponent - 1))


pow_scalar.vjp(input=_pow_scalar_vjp)
pow.scalar_overload("exponent", pow_scalar)


@elementwise(name="pow", key="_scalar_pow", node="PowBackward2", expose=(), promoting_params=("base",))
def scalar_pow(xp, exponent, *, base):
    """base ** exponent, with a scalar base."""
    return xp.scalar_pow(base, exponent)


def _scalar_pow_vjp(xp, g, exponent, exponent_dtype, out, base):
    import cmath
    import math

    if base == 0:
        return xp.where(xp.real(exponent) >= 0, 0, g * (out * -math.inf))
    if isinstance(base, complex) or (base < 0 and exponent_dtype.is_complex):
        return g * (out * cmath.log(base))
    return g * (out * (math.log(base) if base > 0 else math.nan))


scalar_pow.vjp(exponent=_scalar_pow_vjp)


# ----- three operands -----

@elementwise(scalar_inputs=(), unsupported_dtypes=not_implemented("addcmul_cpu_out", "bool"))
def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value · tensor1 · tensor2.

    >>> import flambeau as torch
    >>> torch.addcmul(torch.ones(2), torch.tensor([1., 2.]), torch.tensor([3., 4.]), value=2)
    tensor([ 7., 17.])
    """
    return input + (tensor1 * tensor2 if value == 1 else scalar_operand(value, input.dtype) * tensor1 * tensor2)


addcmul.vjp(input=lambda g: g,
            tensor1=lambda g, tensor2, value: g * (tensor2 * value),
            tensor2=lambda g, tensor1, value: g * (tensor1 * value))


@elementwise(scalar_inputs=(), unsupported_dtypes=dict.fromkeys(("bool", "integer"), RuntimeError(
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
    "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
    "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) "
    "for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / "
    "tensor2), for all dtypes.")))
def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value · tensor1 / tensor2.

    >>> import flambeau as torch
    >>> torch.addcdiv(torch.ones(2), torch.tensor([1., 2.]), torch.tensor([2., 4.]), value=2)
    tensor([2., 2.])
    """
    return input + (tensor1 / tensor2 if value == 1 else value * tensor1 / tensor2)


addcdiv.vjp(input=lambda g: g,
            tensor1=lambda g, tensor2, value: g * (value / tensor2),
            tensor2=lambda g, tensor1, tensor2, value: -(g * (value * tensor1 / (tensor2 * tensor2))))


# ----- absolute value and sign -----

@elementwise(aliases=("absolute",), holomorphic=False, exact_out=FOUND_DTYPE,
             unsupported_dtypes=not_implemented("abs_cpu", "bool"))
def abs(xp, input):
    """The absolute value, |input|.

    >>> import flambeau as torch
    >>> torch.abs(torch.tensor([-1., 2.]))
    tensor([1., 2.])
    """
    return xp.abs(input)


abs.vjp(input=lambda xp, g, input: g * xp.sgn(input))
abs.jvp(lambda xp, t_input, input: xp.real(xp.conj(t_input) * xp.sgn(input)))


@elementwise(exact_out=FOUND_DTYPE, unsupported_dtypes={"complex": NotImplementedError(
    "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.")})
def sign(xp, input):
    """-1, 0 or 1 where an element is negative, zero or positive.

    >>> import flambeau as torch
    >>> torch.sign(torch.tensor([-3., 0., 2.]))
    tensor([-1.,  0.,  1.])
    """
    return xp.sign(input)


sign.vjp(input=lambda xp, g: xp.zeros_like(g))


@elementwise(holomorphic=False, exact_out=FOUND_DTYPE)
def sgn(xp, input):
    """input / |input|, and 0 at 0; for real and complex tensors.

    >>> import flambeau as torch
    >>> torch.sgn(torch.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return xp.sgn(input)


def _sgn_vjp(xp, g, input, out):
    if not xp.is_complex(input):
        return xp.zeros_like(g)
    # the component of g along `out` has no effect; the rest is scaled by 1 / |input|
    parallel = out * xp.real(xp.conj(out) * g)
    return xp.where(input == 0, 0, (g - parallel) / xp.abs(input))


sgn.vjp(input=_sgn_vjp)
sgn.jvp(lambda xp, t_input, input, out: _sgn_vjp(xp, t_input, input, out))  # the projection is self-adjoint


@composite
def positive(input):
    """The tensor itself, +input.

    Raises:
        RuntimeError: the tensor is bool.

    >>> import flambeau as torch
    >>> torch.positive(torch.tensor([1., -2.]))
    tensor([ 1., -2.])
    """
    if input.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# ----- integers -----

@elementwise(differentiable=False, scalar_inputs=(),
             unsupported_dtypes=not_implemented("gcd_cpu", "bool", "float", "complex"))
def gcd(xp, input, other):
    """The greatest common divisor.

    >>> import flambeau as torch
    >>> torch.gcd(torch.tensor([12, 7]), torch.tensor([18, 21]))
    tensor([6, 7])
    """
    return xp.gcd(input, other)


@elementwise(differentiable=False, scalar_inputs=(),
             unsupported_dtypes=not_implemented("lcm_cpu", "bool", "float", "complex"))
def lcm(xp, input, other):
    """The least common multiple.

    >>> import flambeau as torch
    >>> torch.lcm(torch.tensor([4, 7]), torch.tensor([6, 3]))
    tensor([12, 21])
    """
    return xp.lcm(input, other)
