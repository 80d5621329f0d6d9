"""Arithmetic: sums, products, powers and their kin."""

from __future__ import annotations

from .declare import elementwise


@elementwise(aliases=())
def add(input, other):
    """Sum, input + other."""
    return input + other


add.vjp(input=lambda g: g,
        other=lambda g: g)


@elementwise(name="add", key="_add_scaled", node="AddBackward0", expose=())
def add_scaled(input, other, *, alpha):
    """input + alpha · other."""
    return input + alpha * other


add_scaled.vjp(input=lambda g: g,
               other=lambda g, alpha: g * alpha)


@elementwise
def sub(input, other):
    """Difference, input - other."""
    return input - other


sub.vjp(input=lambda g: g,
        other=lambda g: -g)


@elementwise(name="sub", key="_sub_scaled", node="SubBackward0", expose=())
def sub_scaled(input, other, *, alpha):
    """input - alpha · other."""
    return input - alpha * other


sub_scaled.vjp(input=lambda g: g,
               other=lambda g, alpha: -(g * alpha))


@elementwise(name="rsub", key="_rsub_number", node="RsubBackward1", expose=(), numbers=())
def rsub_number(input, *, other):
    """other - input, for a number."""
    return other - input


rsub_number.vjp(input=lambda g: -g)


@elementwise(aliases=("multiply",))
def mul(input, other):
    """Product, input · other."""
    return input * other


mul.vjp(input=lambda g, other: g * other,
        other=lambda g, input: g * input)


@elementwise(promote="float")
def div(input, other):
    """Quotient, input / other."""
    return input / other


div.vjp(input=lambda g, other: g / other,
        other=lambda g, input, other: -(g * ((input / other) / other)))


@elementwise(aliases=("negative",))
def neg(input):
    """Negation, -input."""
    return -input


neg.vjp(input=lambda g: -g)


@elementwise(promote="float")
def reciprocal(xp, input):
    """1 / input."""
    return 1 / input


reciprocal.vjp(input=lambda g, out: -(g * (out * out)))


@elementwise
def pow(xp, input, exponent):
    """Power, input ** exponent."""
    return xp.pow(input, exponent)


pow.node = "PowBackward1"
pow.vjp(
    input=lambda xp, g, input, exponent: g * xp.where(
        exponent == 0, xp.zeros_like(input), exponent * xp.pow(input, exponent - 1)),
    exponent=lambda xp, g, input, exponent, out: g * xp.where(
        (input == 0) & (xp.real(exponent) >= 0), xp.zeros_like(out), out * xp.log(input)),
)


@elementwise(name="pow", key="_pow_number", node="PowBackward0", expose=(), numbers=())
def pow_number(xp, input, *, exponent):
    """input ** exponent, for a number."""
    return xp.pow_number(input, exponent)


def _pow_number_vjp(xp, g, input, exponent):
    if exponent == 0:
        return xp.zeros_like(g)
    if exponent == 2:
        return g * (input * 2)
    return g * (exponent * xp.pow(input, exponent - 1))


pow_number.vjp(input=_pow_number_vjp)
pow.when_number("exponent", pow_number)


@elementwise(name="pow", key="_number_pow", node="PowBackward2", expose=(), numbers=())
def number_pow(xp, exponent, *, base):
    """base ** exponent, for a number as the base."""
    return xp.number_pow(base, exponent)


number_pow.vjp(exponent=lambda xp, g, exponent, out, base: xp.number_pow_gradient(g, exponent, out, base))
