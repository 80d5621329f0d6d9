"""fmod and remainder, exact: long division, 50 bits of the quotient per round.

Most quotients have fewer than 50 bits and take one round; rounds repeat while some lane needs another. float32 is
computed in double, where no float32 is subnormal.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from ..llvm.vectors import Integer, Mask, Real, VectorContext, where, where_integer
from .building_blocks import ldexp, two_product
from .double_precision import through_double

BITS = 50  # of the quotient per round


def exponent(x: Real) -> Integer:
    """⌊log2 x⌋ of positive doubles, subnormal or not."""
    format_ = x.context.format
    up = format_.mantissa + 2
    small = x < format_.tiny
    bits = where(small, x * 2.0**up, x).bits()
    return (bits >> format_.mantissa) - where_integer(small, format_.bias + up, format_.bias)


def one_round(a: Real, b: Real, b_exponent: Integer) -> Real:
    """a minus its largest multiple b 2^s q with q < 2^BITS; a if a < b."""
    s = exponent(a) - b_exponent - BITS
    s = where_integer(s > 0, s, 0)
    step = ldexp(b, s)
    q = (a / step).trunc()
    product, low = two_product(q, step)
    rest = (a - product) - low  # exact
    rest = where(rest < 0.0, rest + step, rest)  # the quotient was rounded up
    return where(a >= b, rest, a)


def magnitude(a: Real, b: Real) -> Real:
    """a - b ⌊a/b⌋ for finite a >= 0 and finite b > 0: a function with a loop, emitted once per module and inlined."""
    outer = a.context
    name = f"flambeau.remainder.v{outer.lanes}" + ("" if outer.fused else ".unfused")
    module = outer.builder.module
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(outer.type, [outer.type] * 2), name)
        function.linkage = "internal"
        function.attributes.add("alwaysinline")
        _define(function, outer)
    return Real(outer, outer.builder.call(function, [a.ir, b.ir]))


def _define(function: Any, outer: VectorContext) -> None:
    entry, head, end = (function.append_basic_block(n) for n in ("entry", "round", "end"))
    builder = ir.IRBuilder(entry)
    context = VectorContext(builder, outer.type, outer.fused, outer.precision)
    a, b = Real(context, function.args[0]), Real(context, function.args[1])
    b_exponent = exponent(b)
    builder.branch(head)
    builder.position_at_end(head)
    left = builder.phi(context.type)
    left.add_incoming(a.ir, entry)
    rest = one_round(Real(context, left), b, b_exponent)
    left.add_incoming(rest.ir, head)
    again: Mask = rest >= b
    builder.cbranch(again.any(), head, end)
    builder.position_at_end(end)
    builder.ret(rest.ir)


def fmod_double(x: Real, y: Real) -> Real:
    """fmod of doubles."""
    a, b = abs(x), abs(y)
    undefined = ~(a < math.inf) | ~(b > 0.0)
    unchanged = undefined | ~(b < math.inf)  # the result is |x|, or NaN
    rest = magnitude(where(unchanged, 0.0, a), where(unchanged, 1.0, b))
    rest = where(unchanged, a, rest).copysign(x)
    return where(undefined | y.isnan(), math.nan, rest)


def fmod(x: Real, y: Real) -> Real:
    """x - y trunc(x / y), exactly: the sign is that of x."""
    return through_double(fmod_double, x, y) if x.context.precision == "single" else fmod_double(x, y)


def remainder(x: Real, y: Real) -> Real:
    """x - y floor(x / y): the sign is that of y. fmod + y is rounded, as in PyTorch."""
    rest = fmod(x, y)
    other = (rest < 0.0) ^ (y < 0.0)
    return where(other & ~rest.equals(0.0), rest + y, rest)
