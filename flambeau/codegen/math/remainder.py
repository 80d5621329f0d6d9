"""fmod and remainder: exact, by long division with as many bits of the quotient at a time as a double holds.

The usual quotient has fewer than 50 bits and is done in one round; the rounds go on while some lane needs another.
float32 goes through double, which has no subnormal numbers among its values.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from ..llvm.vectors import Lanes, Mask, Real, Whole, scaled, two_product, where, where_whole
from .double_precision import through_double

BITS = 50  # of the quotient in a round


def exponent(x: Real) -> Whole:
    """⌊log2 x⌋ of positive doubles, subnormal ones included."""
    format_ = x.lanes.format
    up = format_.mantissa + 2
    small = x < format_.tiny
    bits = where(small, x * 2.0**up, x).bits()
    return (bits >> format_.mantissa) - where_whole(small, format_.bias + up, format_.bias)


def one_round(a: Real, b: Real, b_exponent: Whole) -> Real:
    """a less the largest multiple b 2^s q, q < 2^BITS, that it holds; a where a < b."""
    s = exponent(a) - b_exponent - BITS
    s = where_whole(s > 0, s, 0)
    step = scaled(b, s)
    q = (a / step).trunc()
    product, low = two_product(q, step)
    rest = (a - product) - low  # exact
    rest = where(rest < 0.0, rest + step, rest)  # the quotient was rounded up
    return where(a >= b, rest, a)


def size_of_remainder(a: Real, b: Real) -> Real:
    """a - b ⌊a/b⌋ for finite a >= 0 and finite b > 0, emitted once as a function with a loop that is inlined."""
    outer = a.lanes
    name = f"flambeau.remainder.v{outer.count}" + ("" if outer.fused else ".unfused")
    module = outer.builder.module
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(outer.type, [outer.type] * 2), name)
        function.linkage = "internal"
        function.attributes.add("alwaysinline")
        _define(function, outer)
    return Real(outer, outer.builder.call(function, [a.ir, b.ir]))


def _define(function: Any, outer: Lanes) -> None:
    entry, head, end = (function.append_basic_block(n) for n in ("entry", "round", "end"))
    builder = ir.IRBuilder(entry)
    lanes = Lanes(builder, outer.type, outer.fused, outer.precision)
    a, b = Real(lanes, function.args[0]), Real(lanes, function.args[1])
    b_exponent = exponent(b)
    builder.branch(head)
    builder.position_at_end(head)
    left = builder.phi(lanes.type)
    left.add_incoming(a.ir, entry)
    rest = one_round(Real(lanes, left), b, b_exponent)
    left.add_incoming(rest.ir, head)
    again: Mask = rest >= b
    builder.cbranch(again.any(), head, end)
    builder.position_at_end(end)
    builder.ret(rest.ir)


def in_double(x: Real, y: Real) -> Real:
    """fmod of doubles."""
    a, b = abs(x), abs(y)
    meaningless = ~(a < math.inf) | ~(b > 0.0)
    whole = meaningless | ~(b < math.inf)  # |x| itself, or no number
    rest = size_of_remainder(where(whole, 0.0, a), where(whole, 1.0, b))
    rest = where(whole, a, rest).copysign(x)
    return where(meaningless | y.isnan(), math.nan, rest)


def fmod(x: Real, y: Real) -> Real:
    """x - y trunc(x / y), exactly: the sign is that of x."""
    return through_double(in_double, x, y) if x.lanes.precision == "single" else in_double(x, y)


def remainder(x: Real, y: Real) -> Real:
    """x - y floor(x / y): the sign is that of y. fmod + y is rounded, as in PyTorch."""
    rest = fmod(x, y)
    other = (rest < 0.0) ^ (y < 0.0)
    return where(other & ~rest.equals(0.0), rest + y, rest)
