"""Arithmetic with a number, as PyTorch's composites record it: nodes of their own, without an edge for it."""

from __future__ import annotations

from ..declare import elementwise


@elementwise(name="add", key="_add_number", node="AddBackward1", expose=(), promoting=("other",))
def add_number(input, *, other):
    """input + other, for a number."""
    return input + other


add_number.vjp(input=lambda g: g)


@elementwise(name="sub", key="_sub_number", node="SubBackward1", expose=(), promoting=("other",))
def sub_number(input, *, other):
    """input - other, for a number."""
    return input - other


sub_number.vjp(input=lambda g: g)


@elementwise(name="mul", key="_mul_number", node="MulBackward1", expose=(), promoting=("other",))
def mul_number(input, *, other):
    """input · other, for a number."""
    return input * other


mul_number.vjp(input=lambda g, other: g * other)


@elementwise(name="div", key="_div_number", node="DivBackward1", expose=(), promoting=("other",), promote="float")
def div_number(input, *, other):
    """input / other, for a number."""
    return input / other


div_number.vjp(input=lambda g, other: g / other)
