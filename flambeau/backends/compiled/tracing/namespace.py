"""The operators' namespace when values are symbols: every elementwise primitive, as an expression.

It speaks the words of `backends.numpy.elementwise`, and means the same by them. Where the primitive there has a rule
of its own (the sign of a zero remainder, what is a number's square), so has the one here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import dtypes
from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import BOOL, FLOAT32, FLOAT64, Node
from .scalars import Scalar
from .symbolic_elements import Symbol, Untraceable, binary, floating, promoted, trace_of


def _number(x: Any) -> bool:
    return not isinstance(x, Symbol)


def _same(x: Symbol, node: Node) -> Symbol:
    return Symbol(node, x.trace)


def _like(x: Symbol, value: Any) -> Symbol:
    """A number as an element of the dtype of `x`."""
    return _same(x, x.trace.number(value, x.dtype))


def _one(name: str) -> Callable[[Symbol], Symbol]:
    def function(x: Symbol) -> Symbol:
        return floating(name, x)

    return function


def _two(name: str) -> Callable[[Any, Any], Symbol]:
    def function(x: Any, y: Any) -> Symbol:
        return binary(name, x, y)

    return function


def _two_floats(name: str) -> Callable[[Any, Any], Symbol]:
    def function(x: Any, y: Any) -> Symbol:
        return floating(name, x, y)

    return function


def _rounded(name: str) -> Callable[[Symbol], Symbol]:
    def function(x: Symbol) -> Symbol:
        return x if x.dtype.kind in "iub" else floating(name, x)

    return function


def where(condition: Any, x: Any, y: Any) -> Symbol:
    """`x` where the condition holds, else `y`."""
    trace, dtype = trace_of(condition), promoted(x, y)
    return Symbol(scalar_ir.select(scalar_ir.cast(condition.node, BOOL), trace.node(x, dtype),
                                    trace.node(y, dtype)), trace)


# ----- signs, classes, logic -----

def _abs(x: Symbol) -> Symbol:
    return x if x.dtype.kind == "u" else binary("abs", x)


def _sign(x: Symbol) -> Symbol:
    if x.dtype == BOOL:
        return x
    up = where(x > 0, _like(x, 1), 0)
    return up if x.dtype.kind == "u" else where(x < 0, -1, up)


def _isnan(x: Symbol) -> Symbol:
    return x != x


def _isinf(x: Symbol) -> Symbol:
    return abs_(x) == math.inf if x.dtype.kind == "f" else x != x


def _isfinite(x: Symbol) -> Symbol:
    return abs_(x) < math.inf if x.dtype.kind == "f" else x == x


def _always(x: Symbol) -> Symbol:
    return _same(x, scalar_ir.constant(True, BOOL))


def _signbit(x: Symbol) -> Symbol:
    if x.dtype.kind == "f":
        return binary("copysign", _like(x, 1.0), x) < 0
    return x < 0 if x.dtype.kind == "i" else _same(x, scalar_ir.constant(False, BOOL))


def _truth(x: Any) -> Node:
    return scalar_ir.cast(x.node, BOOL)


def _logical(op: str) -> Callable[[Symbol, Symbol], Symbol]:
    def function(x: Symbol, y: Symbol) -> Symbol:
        return _same(x, scalar_ir.apply(op, _truth(x), _truth(y)))

    return function


def _logical_not(x: Symbol) -> Symbol:
    return _same(x, ~_truth(x))


def _bitwise_not(x: Symbol) -> Symbol:
    return _same(x, ~x.node)


def _angle(x: Symbol) -> Symbol:
    return where(x < 0, math.pi, where(x != x, x, 0))


def _plain(x: Symbol) -> Symbol:
    return x


abs_ = _abs


# ----- division -----

def _of_floats(*operands: Any) -> None:
    if promoted(*operands).kind != "f":
        raise Untraceable("division of integers looks for zeros first")


def _floor_divide(x: Any, y: Any) -> Symbol:
    _of_floats(x, y)
    rest = binary("fmod", x, y)
    divisor = y if isinstance(y, Symbol) else _like(rest, y)
    across = scalar_ir.apply("xor", (rest < 0).node, (divisor < 0).node)
    turned = _same(rest, scalar_ir.apply("and", across, (rest != 0).node))
    quotient = (x - rest) / divisor
    quotient = where(turned, quotient - 1, quotient)
    down = floating("floor", quotient)
    exact = x / divisor
    found = where(quotient == 0, binary("copysign", _like(rest, 0.0), exact),
                  where(quotient - down > 0.5, down + 1, down))
    return where(divisor == 0, exact, found)


def _trunc_divide(x: Any, y: Any) -> Symbol:
    _of_floats(x, y)
    return floating("trunc", floating("div", x, y))


def _remainder(x: Any, y: Any) -> Symbol:
    _of_floats(x, y)
    left = binary("remainder", x, y)
    return where(left == 0, binary("copysign", left, x), left)


def _fmod(x: Any, y: Any) -> Symbol:
    _of_floats(x, y)
    return binary("fmod", x, y)


def _reciprocal(x: Symbol) -> Symbol:
    return floating("div", 1, x)


def _rsqrt(x: Symbol) -> Symbol:
    return 1 / floating("sqrt", x)


# ----- powers -----

def _square(x: Symbol) -> Symbol:
    return x * x


def _pow(x: Any, y: Any) -> Symbol:
    if _number(y):
        return _pow_scalar(x, y)
    if promoted(x, y).kind != "f":
        raise Untraceable("integer powers")
    return binary("pow", x, y)


def _pow_scalar(x: Symbol, exponent: Any) -> Symbol:
    if exponent == 2:
        return x * x
    if exponent == 1:
        return x
    if exponent == 3:
        return x * x * x
    if x.dtype.kind != "f":
        raise Untraceable("integer powers")
    if exponent == 0.5:
        return floating("sqrt", x)
    if exponent == -0.5:
        return _rsqrt(x)
    if exponent == -1:
        return 1 / x
    if exponent == -2:
        return 1 / (x * x)
    return binary("pow", x, exponent)


def _scalar_pow(base: Any, exponent: Symbol) -> Symbol:
    if exponent.dtype.kind != "f":
        raise Untraceable("integer powers")
    if base == 2:
        return floating("exp2", exponent)
    return binary("pow", base, exponent)


# ----- two floats -----

def _hypot(x: Symbol, y: Symbol) -> Symbol:
    if promoted(x, y) == FLOAT32:  # squares of float32 neither overflow nor vanish in float64
        a, b = (_same(each, scalar_ir.cast(each.node, FLOAT64)) for each in (x, y))
        length = floating("sqrt", a * a + b * b)
        found = _same(x, scalar_ir.cast(length.node, FLOAT32))
    else:
        a, b = abs_(x), abs_(y)
        larger, smaller = binary("maximum", a, b), binary("minimum", a, b)
        ratio = smaller / where(larger == 0, 1, larger)
        found = larger * floating("sqrt", 1 + ratio * ratio)
    endless = _same(x, scalar_ir.apply("or", _isinf(x).node, _isinf(y).node))
    return where(endless, math.inf, found)


def _logaddexp(x: Symbol, y: Symbol) -> Symbol:
    return _log_of_sum(x, y, math.log(2), "exp", 1.0)


def _logaddexp2(x: Symbol, y: Symbol) -> Symbol:
    return _log_of_sum(x, y, 1.0, "exp2", 1 / math.log(2))


def _log_of_sum(x: Symbol, y: Symbol, twice: float, power: str, scale: float) -> Symbol:
    apart = x - y
    more = floating("log1p", floating(power, -abs_(apart)))
    return where(x == y, x + twice, binary("maximum", x, y) + (more if scale == 1 else more * scale))


def _lerp(x: Symbol, end: Symbol, weight: Any) -> Symbol:
    for each in (end, weight):
        if isinstance(each, Symbol) and each.dtype != x.dtype:
            raise Untraceable("operands of unlike dtypes")
    span = end - x
    if _number(weight):
        # from the nearer end, so that both ends are hit exactly
        return x + weight * span if abs(weight) < 0.5 else end - span * (1 - weight)
    return where(abs_(weight) < 0.5, x + weight * span, end - span * (1 - weight))


def _nan_to_num(x: Symbol, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Symbol:
    if x.dtype.kind in "iub":
        return x
    limits = dtypes.finfo(dtypes.of(x.dtype))
    wide = _same(x, scalar_ir.to_opmath(x.node))
    found = where(wide != wide, 0.0 if nan is None else nan,
                  where(wide == math.inf, limits.max if posinf is None else posinf,
                        where(wide == -math.inf, limits.min if neginf is None else neginf, wide)))
    return _same(x, scalar_ir.cast(found.node, x.dtype))


def _to(x: Symbol, dtype: Any) -> Symbol:
    return _same(x, scalar_ir.cast(x.node, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype))


# ----- filled -----

def _full_like(x: Symbol, value: Any) -> Symbol:
    if isinstance(value, Symbol):
        raise Untraceable("fills with an element")
    if x.dtype in dtypes.NARROW:
        return _same(x, scalar_ir.cast(x.trace.number(value, FLOAT32), x.dtype))
    if x.dtype.kind != "f" and not isinstance(value, Scalar):
        value = np.asarray(value).astype(x.dtype).item()
    return _same(x, x.trace.number(value, x.dtype))


def _without(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise Untraceable(f"{name} has no expression")

    return function


_FLOATS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
           "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv", "sqrt")
_PAIRS = ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "fmax", "fmin")
_WITHOUT = ("erfcx", "log_ndtr", "ndtri", "lgamma", "digamma", "polygamma", "zeta", "i0", "i0e", "i1", "i1e", "gcd",
            "lcm", "bitwise_left_shift", "bitwise_right_shift", "frexp", "nextafter", "complex", "polar", "imag",
            "view_as_real", "view_as_complex", "trunc_divide_narrow")

FUNCTIONS: dict[str, Callable[..., Any]] = {name: _one(name) for name in _FLOATS}
FUNCTIONS |= {name: _two(name) for name in _PAIRS}
FUNCTIONS |= {name: _two_floats(name) for name in ("div", "atan2", "copysign")}
FUNCTIONS |= {name: _rounded(name) for name in ("floor", "ceil", "trunc", "round")}
FUNCTIONS |= {f"logical_{op}": _logical(op) for op in ("and", "or", "xor")}
FUNCTIONS |= {f"bitwise_{op}": _two(op) for op in ("and", "or", "xor")}
FUNCTIONS |= {name: _without(name) for name in _WITHOUT}
FUNCTIONS |= {
    "where": where, "abs": _abs, "neg": lambda x: -x, "sign": _sign, "sgn": _sign, "isnan": _isnan, "isinf": _isinf,
    "isfinite": _isfinite, "isreal": _always, "signbit": _signbit, "logical_not": _logical_not,
    "bitwise_not": _bitwise_not, "angle": _angle, "conj": _plain, "real": _plain, "is_complex": lambda x: False,
    "floor_divide": _floor_divide, "trunc_divide": _trunc_divide, "remainder": _remainder, "fmod": _fmod,
    "reciprocal": _reciprocal, "rsqrt": _rsqrt, "square": _square, "pow": _pow, "pow_scalar": _pow_scalar,
    "scalar_pow": _scalar_pow, "hypot": _hypot, "logaddexp": _logaddexp, "logaddexp2": _logaddexp2, "lerp": _lerp,
    "nan_to_num": _nan_to_num, "to": _to, "full_like": _full_like,
    "zeros_like": lambda x: _full_like(x, 0), "ones_like": lambda x: _full_like(x, 1),
}


class ExpressionNamespace:
    """Operators on symbols: the functions above first, then the declared elementwise operators' own forwards.

    Args:
        registry: the declared operators by name.
    """

    def __init__(self, registry: dict[str, Any]) -> None:
        self.__dict__.update(FUNCTIONS)
        self._registry = registry

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = self._registry.get(name)
        if op is None or op.kind != "elementwise":
            raise Untraceable(f"{name} is not elementwise")
        forward = op.forward
        if not op.takes_xp:
            return forward

        def bound(*args: Any, **params: Any) -> Any:
            return forward(self, *args, **params)

        return bound


__all__ = ["FUNCTIONS", "ExpressionNamespace"]
