"""Arithmetic with a scalar operand, under the nodes that PyTorch records inside composites (AddBackward1, ...)."""

from __future__ import annotations

from ..declare import elementwise


@elementwise(name="add", key="_add_scalar", node="AddBackward1", expose=(), promoting_params=("other",))
def add_scalar(input, *, other):
    """input + other, with a scalar `other`."""
    return input + other


add_scalar.vjp(input=lambda g: g)


@elementwise(name="sub", key="_sub_scalar", node="SubBackward1", expose=(), promoting_params=("other",))
def sub_scalar(input, *, other):
    """input - other, with a scalar `other`."""
    return input - other


sub_scalar.vjp(input=lambda g: g)


@elementwise(name="mul", key="_mul_scalar", node="MulBackward1", expose=(), promoting_params=("other",))
def mul_scalar(input, *, other):
    """input · other, with a scalar `other`."""
    return input * other


mul_scalar.vjp(input=lambda g, other: g * other)


@elementwise(name="div", key="_div_scalar", node="DivBackward1", expose=(), promoting_params=("other",),
             promote="float")
def div_scalar(input, *, other):
    """input / other, with a scalar `other`."""
    return input / other


div_scalar.vjp(input=lambda g, other: g / other)
