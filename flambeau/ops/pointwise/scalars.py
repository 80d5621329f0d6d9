"""Arithmetic with a number, as PyTorch's composites record it: nodes of their own, without an edge for it."""

from __future__ import annotations

from ..declare import elementwise


@elementwise(name="add", key="_add_scalar", node="AddBackward1", expose=(), promoting_params=("other",))
def add_scalar(input, *, other):
    """input + other, for a number."""
    return input + other


add_scalar.vjp(input=lambda g: g)


@elementwise(name="sub", key="_sub_scalar", node="SubBackward1", expose=(), promoting_params=("other",))
def sub_scalar(input, *, other):
    """input - other, for a number."""
    return input - other


sub_scalar.vjp(input=lambda g: g)


@elementwise(name="mul", key="_mul_scalar", node="MulBackward1", expose=(), promoting_params=("other",))
def mul_scalar(input, *, other):
    """input · other, for a number."""
    return input * other


mul_scalar.vjp(input=lambda g, other: g * other)


@elementwise(name="div", key="_div_scalar", node="DivBackward1", expose=(), promoting_params=("other",),
             promote="float")
def div_scalar(input, *, other):
    """input / other, for a number."""
    return input / other


div_scalar.vjp(input=lambda g, other: g / other)
