"""Orthogonal polynomials of degree n at x: `kernels.special.orthogonal_polynomials` for one element.

A degree is truncated to an integer; of a negative one the value is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...scalar.scalar_ir import Node, acos, cast, constant, cos, eq, ne, select, sin, trunc
from ..coordinates import INT32
from ..kernel_ir import KernelBuilder

Step = Callable[[Node, Node, Node], Node]


def _climb(b: KernelBuilder, n: Node, first: Node, step: Step, open_: Node) -> Node:
    """The polynomial of degree n, given those of degrees 0 (1) and 1, for elements that are open."""
    one = constant(1.0, first.dtype)
    last, before = b.local(first), b.local(one)
    with b.when(open_ & (n > 1.0)), b.loop(1, cast(n, INT32)) as degree:
        value, previous = b.get(last), b.get(before)
        with b.when(eq(value, value)):
            b.set(before, value)
            b.set(last, step(value, previous, cast(degree, first.dtype)))
    return select(n < 1.0, one, b.get(last))


def _is_even(n: Node) -> Node:
    half = n * 0.5
    return eq(trunc(half), half)


def _chebyshev(b: KernelBuilder, x: Node, n: Node, kind: str, shifted: bool) -> Node:
    argument = x + x - 1.0 if shifted else x
    twice = argument + argument
    one = constant(1.0, x.dtype)
    more, most = n + 1.0, n + n + 1.0
    start = {"t": 7, "u": 7 if shifted else 9, "v": 7 if shifted else 9, "w": 5 if shifted else 9}[kind]
    right, at_left = {"t": (one, one), "u": (more, more), "v": (one, most), "w": (most, one)}[kind]
    left = select(_is_even(n), at_left, -at_left)
    inside = (n >= float(start)) & (abs(argument) < 1.0)
    angle = acos(argument)
    half, between = angle / 2.0, (n + 0.5) * angle
    wave = (cos(n * angle) if kind == "t" else sin((n + 1.0) * angle) / sin(angle) if kind == "u" else
            cos(between) / cos(half) if kind == "v" else sin(between) / sin(half))
    at_right, at_left_end = eq(argument, 1.0), eq(argument, -1.0)
    open_ = ~(at_right | at_left_end | inside)
    first = argument if kind == "t" else twice + {"u": 0.0, "v": -1.0, "w": 1.0}[kind]
    climbed = _climb(b, n, first, lambda last, before, _: twice * last - before, open_)
    return select(at_right, right, select(at_left_end, left, select(inside, wave, climbed)))


def _hermite(b: KernelBuilder, x: Node, n: Node, physicists: bool) -> Node:
    too_high = n > (512.0 if x.dtype == np.dtype(np.float64) else 128.0)
    factor = x + x if physicists else x
    climbed = _climb(b, n, factor, lambda last, before, k: factor * last - (2.0 * k * before if physicists
                                                                           else k * before), ~too_high)
    return select(too_high, float("nan"), climbed)


def _laguerre(b: KernelBuilder, x: Node, n: Node) -> Node:
    at_zero = eq(x, 0.0)
    below = 1.0 - x
    climbed = _climb(b, n, below, lambda last, before, k: ((2.0 * k + below) * last - k * before) / (k + 1.0),
                     ~at_zero)
    return select(at_zero, 1.0, climbed)


def _legendre(b: KernelBuilder, x: Node, n: Node) -> Node:
    ends = eq(abs(x), 1.0)
    one = constant(1.0, x.dtype)
    at_end = select((x > 0.0) | _is_even(n), one, -one)
    climbed = _climb(b, n, x, lambda last, before, k: ((2.0 * k + 1.0) * x * last - k * before) / (k + 1.0), ~ends)
    return select(ends, at_end, climbed)


def polynomial(b: KernelBuilder, elements: Sequence[Node], of: str) -> list[Node]:
    """The polynomial of a name, of x and the degree."""
    x, n = elements
    n = trunc(n)
    kind = of[-1]
    if "chebyshev" in of:
        value = _chebyshev(b, x, n, kind, of.startswith("shifted"))
    elif "hermite" in of:
        value = _hermite(b, x, n, of.endswith("_h"))
    else:
        value = (_laguerre if "laguerre" in of else _legendre)(b, x, n)
    return [select(n < 0.0, 0.0, select(ne(n, n), float("nan"), value))]


__all__ = ["polynomial"]
