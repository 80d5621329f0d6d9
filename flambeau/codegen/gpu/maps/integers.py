"""Greatest common divisors and shifts of integers."""

from __future__ import annotations

from collections.abc import Sequence

from ...scalar.scalar_ir import Node, cast, constant, select
from ..coordinates import INT32
from ..kernel_ir import KernelBuilder

#: divisions that Euclid's algorithm takes at most for integers of 64 bits
_DIVISIONS = 93


def gcd(b: KernelBuilder, elements: Sequence[Node]) -> list[Node]:
    """The greatest common divisor, which is not negative but for the smallest integer."""
    zero = constant(0, elements[0].dtype)
    x, y = (b.local(select(each < zero, -each, each) if each.dtype.kind == "i" else each) for each in elements)
    with b.loop(0, _DIVISIONS):
        first, second = b.get(x), b.get(y)
        more = (second < zero) | (second > zero)
        rest = first - first / second * second
        b.set(x, select(more, second, first))
        b.set(y, select(more, select(rest < zero, -rest, rest) if rest.dtype.kind == "i" else rest, second))
    return [b.get(x)]


def _powers(b: KernelBuilder, x: Node, by: Node) -> tuple[Node, Node]:
    """2 to the power of a shift, and whether the shift is shorter than the integer."""
    bits = 8 * x.dtype.itemsize
    signed = x.dtype.kind == "i"
    short = (by < bits) & (by >= 0) if by.dtype.kind == "i" else by < bits
    table = b.constants([1 << i if i < bits - 1 or not signed else -(1 << i) for i in range(bits)], x.dtype)
    return b.load(table, cast(select(short, by, constant(0, by.dtype)), INT32)), short


def shift_left(b: KernelBuilder, elements: Sequence[Node]) -> list[Node]:
    """x · 2ʸ; 0 for a shift out of the integer's bits."""
    x, by = elements
    power, short = _powers(b, x, by)
    return [select(short, x * power, constant(0, x.dtype))]


def shift_right(b: KernelBuilder, elements: Sequence[Node]) -> list[Node]:
    """x / 2ʸ, rounded down; the sign alone for a shift out of the integer's bits."""
    x, by = elements
    power, short = _powers(b, x, by)
    if x.dtype.kind == "u":
        return [select(short, x / power, constant(0, x.dtype))]
    zero, one = constant(0, x.dtype), constant(1, x.dtype)
    quotient = x / power
    down = select((x < zero) & (quotient * power > x), quotient - one, quotient)
    sign = select(x < zero, zero - one, zero)
    return [select(short & (power > zero), down, sign)]


__all__ = ["gcd", "shift_left", "shift_right"]
