"""The namespace `xp` over symbolic elements: every elementwise primitive as a scalar expression.

Names and semantics are those of `backends.numpy.elementwise`, special cases (the sign of a zero remainder, powers by a
constant exponent) included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import dtypes
from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import BOOL, FLOAT32, FLOAT64, Node
from ...special_functions import ROUNDED, SPECIAL
from .scalars import Scalar
from .symbolic_elements import SymbolicElement, Untraceable, binary, floating, promoted_dtype, trace_of


def _is_scalar(x: Any) -> bool:
    return not isinstance(x, SymbolicElement)


def _element_of(x: SymbolicElement, node: Node) -> SymbolicElement:
    return SymbolicElement(node, x.trace)


def _scalar_like(x: SymbolicElement, value: Any) -> SymbolicElement:
    """A number as an element of the dtype of `x`."""
    return _element_of(x, x.trace.number(value, x.dtype))


def _unary(name: str) -> Callable[[SymbolicElement], SymbolicElement]:
    def function(x: SymbolicElement) -> SymbolicElement:
        return floating(name, x)

    return function


def _binary(name: str) -> Callable[[Any, Any], SymbolicElement]:
    def function(x: Any, y: Any) -> SymbolicElement:
        return binary(name, x, y)

    return function


def _binary_floating(name: str) -> Callable[[Any, Any], SymbolicElement]:
    def function(x: Any, y: Any) -> SymbolicElement:
        return floating(name, x, y)

    return function


def _rounding(name: str) -> Callable[[SymbolicElement], SymbolicElement]:
    def function(x: SymbolicElement) -> SymbolicElement:
        return x if x.dtype.kind in "iub" else floating(name, x)

    return function


def where(condition: Any, x: Any, y: Any) -> SymbolicElement:
    """`x` where the condition holds, else `y`."""
    trace, dtype = trace_of(condition), promoted_dtype(x, y)
    return SymbolicElement(scalar_ir.select(scalar_ir.cast(condition.node, BOOL), trace.node(x, dtype),
                                    trace.node(y, dtype)), trace)


# ----- signs, classes, logic -----

def _abs(x: SymbolicElement) -> SymbolicElement:
    return x if x.dtype.kind == "u" else binary("abs", x)


def _sign(x: SymbolicElement) -> SymbolicElement:
    if x.dtype == BOOL:
        return x
    positive = where(x > 0, _scalar_like(x, 1), 0)
    return positive if x.dtype.kind == "u" else where(x < 0, -1, positive)


def _isnan(x: SymbolicElement) -> SymbolicElement:
    return x != x


def _isinf(x: SymbolicElement) -> SymbolicElement:
    return abs_(x) == math.inf if x.dtype.kind == "f" else x != x


def _isfinite(x: SymbolicElement) -> SymbolicElement:
    return abs_(x) < math.inf if x.dtype.kind == "f" else x == x


def _always(x: SymbolicElement) -> SymbolicElement:
    return _element_of(x, scalar_ir.constant(True, BOOL))


def _signbit(x: SymbolicElement) -> SymbolicElement:
    if x.dtype.kind == "f":
        return binary("copysign", _scalar_like(x, 1.0), x) < 0
    return x < 0 if x.dtype.kind == "i" else _element_of(x, scalar_ir.constant(False, BOOL))


def _as_bool(x: Any) -> Node:
    return scalar_ir.cast(x.node, BOOL)


def _logical(op: str) -> Callable[[SymbolicElement, SymbolicElement], SymbolicElement]:
    def function(x: SymbolicElement, y: SymbolicElement) -> SymbolicElement:
        return _element_of(x, scalar_ir.apply(op, _as_bool(x), _as_bool(y)))

    return function


def _logical_not(x: SymbolicElement) -> SymbolicElement:
    return _element_of(x, ~_as_bool(x))


def _bitwise_not(x: SymbolicElement) -> SymbolicElement:
    return _element_of(x, ~x.node)


def _angle(x: SymbolicElement) -> SymbolicElement:
    return where(x < 0, math.pi, where(x != x, x, 0))


def _identity(x: SymbolicElement) -> SymbolicElement:
    return x


abs_ = _abs


# ----- division -----

def _check_floats(*operands: Any) -> None:
    if promoted_dtype(*operands).kind != "f":
        raise Untraceable("integer division, which checks for zeros")


def _floor_divide(x: Any, y: Any) -> SymbolicElement:
    _check_floats(x, y)
    remainder = binary("fmod", x, y)
    divisor = y if isinstance(y, SymbolicElement) else _scalar_like(remainder, y)
    signs_differ = scalar_ir.apply("xor", (remainder < 0).node, (divisor < 0).node)
    adjust = _element_of(remainder, scalar_ir.apply("and", signs_differ, (remainder != 0).node))
    quotient = (x - remainder) / divisor
    quotient = where(adjust, quotient - 1, quotient)
    floor = floating("floor", quotient)
    exact = x / divisor
    result = where(quotient == 0, binary("copysign", _scalar_like(remainder, 0.0), exact),
                  where(quotient - floor > 0.5, floor + 1, floor))
    return where(divisor == 0, exact, result)


def _trunc_divide(x: Any, y: Any) -> SymbolicElement:
    _check_floats(x, y)
    return floating("trunc", floating("div", x, y))


def _remainder(x: Any, y: Any) -> SymbolicElement:
    _check_floats(x, y)
    result = binary("remainder", x, y)
    return where(result == 0, binary("copysign", result, x), result)


def _fmod(x: Any, y: Any) -> SymbolicElement:
    _check_floats(x, y)
    return binary("fmod", x, y)


def _reciprocal(x: SymbolicElement) -> SymbolicElement:
    return floating("div", 1, x)


def _rsqrt(x: SymbolicElement) -> SymbolicElement:
    return 1 / floating("sqrt", x)


# ----- powers -----

def _square(x: SymbolicElement) -> SymbolicElement:
    return x * x


def _pow(x: Any, y: Any) -> SymbolicElement:
    if _is_scalar(y):
        return _pow_scalar(x, y)
    if promoted_dtype(x, y).kind != "f":
        raise Untraceable("integer powers")
    return binary("pow", x, y)


def _pow_scalar(x: SymbolicElement, exponent: Any) -> SymbolicElement:
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


def _scalar_pow(base: Any, exponent: SymbolicElement) -> SymbolicElement:
    if exponent.dtype.kind != "f":
        raise Untraceable("integer powers")
    if base == 2:
        return floating("exp2", exponent)
    return binary("pow", base, exponent)


# ----- two floats -----

def _hypot(x: SymbolicElement, y: SymbolicElement) -> SymbolicElement:
    if promoted_dtype(x, y) == FLOAT32:  # squares of float32 neither overflow nor vanish in float64
        a, b = (_element_of(each, scalar_ir.cast(each.node, FLOAT64)) for each in (x, y))
        length = floating("sqrt", a * a + b * b)
        result = _element_of(x, scalar_ir.cast(length.node, FLOAT32))
    else:
        a, b = abs_(x), abs_(y)
        larger, smaller = binary("maximum", a, b), binary("minimum", a, b)
        ratio = smaller / where(larger == 0, 1, larger)
        result = larger * floating("sqrt", 1 + ratio * ratio)
    infinite = _element_of(x, scalar_ir.apply("or", _isinf(x).node, _isinf(y).node))
    return where(infinite, math.inf, result)


def _logaddexp(x: SymbolicElement, y: SymbolicElement) -> SymbolicElement:
    return _log_of_sum(x, y, math.log(2), "exp", 1.0)


def _logaddexp2(x: SymbolicElement, y: SymbolicElement) -> SymbolicElement:
    return _log_of_sum(x, y, 1.0, "exp2", 1 / math.log(2))


def _log_of_sum(x: SymbolicElement, y: SymbolicElement, twice: float, power: str, scale: float) -> SymbolicElement:
    difference = x - y
    correction = floating("log1p", floating(power, -abs_(difference)))
    return where(x == y, x + twice, binary("maximum", x, y) + (correction if scale == 1 else correction * scale))


def _lerp(x: SymbolicElement, end: SymbolicElement, weight: Any) -> SymbolicElement:
    for each in (end, weight):
        if isinstance(each, SymbolicElement) and each.dtype != x.dtype:
            raise Untraceable("operands of different dtypes")
    span = end - x
    if _is_scalar(weight):
        # from the nearer end, so that both ends are exact
        return x + weight * span if abs(weight) < 0.5 else end - span * (1 - weight)
    return where(abs_(weight) < 0.5, x + weight * span, end - span * (1 - weight))


def _nan_to_num(x: SymbolicElement, nan: Any = None, posinf: Any = None, neginf: Any = None) -> SymbolicElement:
    if x.dtype.kind in "iub":
        return x
    limits = dtypes.finfo(dtypes.of(x.dtype))
    wide = _element_of(x, scalar_ir.to_opmath(x.node))
    result = where(wide != wide, 0.0 if nan is None else nan,
                  where(wide == math.inf, limits.max if posinf is None else posinf,
                        where(wide == -math.inf, limits.min if neginf is None else neginf, wide)))
    return _element_of(x, scalar_ir.cast(result.node, x.dtype))


def _to(x: SymbolicElement, dtype: Any) -> SymbolicElement:
    return _element_of(x, scalar_ir.cast(x.node, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype))


# ----- factories -----

def _full_like(x: SymbolicElement, value: Any) -> SymbolicElement:
    if isinstance(value, SymbolicElement):
        raise Untraceable("a fill value that is an element")
    if x.dtype in dtypes.NARROW:
        return _element_of(x, scalar_ir.cast(x.trace.number(value, FLOAT32), x.dtype))
    if x.dtype.kind != "f" and not isinstance(value, Scalar):
        value = np.asarray(value).astype(x.dtype).item()
    return _element_of(x, x.trace.number(value, x.dtype))


def _unsupported(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise Untraceable(f"{name} has no expression")

    return function


_FLOAT_OPS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
              "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv", "lgamma",
              "digamma", "sqrt")
_BINARY_OPS = ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "fmax", "fmin")
_UNSUPPORTED = (*(name for name in SPECIAL if name not in _FLOAT_OPS), "gcd", "lcm", "bitwise_left_shift",
                "bitwise_right_shift", "frexp", "nextafter", "complex", "polar", "imag", "view_as_real",
                "view_as_complex", "trunc_divide_narrow")

FUNCTIONS: dict[str, Callable[..., Any]] = {name: _unary(name) for name in _FLOAT_OPS}
FUNCTIONS |= {name: _binary(name) for name in _BINARY_OPS}
FUNCTIONS |= {name: _binary_floating(name) for name in ("div", "atan2", "copysign")}
FUNCTIONS |= {name: _rounding(name) for name in ("floor", "ceil", "trunc", "round")}
FUNCTIONS |= {f"logical_{op}": _logical(op) for op in ("and", "or", "xor")}
FUNCTIONS |= {f"bitwise_{op}": _binary(op) for op in ("and", "or", "xor")}
FUNCTIONS |= {name: _unsupported(name) for name in _UNSUPPORTED}
FUNCTIONS |= {
    "where": where, "abs": _abs, "neg": lambda x: -x, "sign": _sign, "sgn": _sign, "isnan": _isnan, "isinf": _isinf,
    "isfinite": _isfinite, "isreal": _always, "signbit": _signbit, "logical_not": _logical_not,
    "bitwise_not": _bitwise_not, "angle": _angle, "conj": _identity, "real": _identity, "is_complex": lambda x: False,
    "floor_divide": _floor_divide, "trunc_divide": _trunc_divide, "remainder": _remainder, "fmod": _fmod,
    "reciprocal": _reciprocal, "rsqrt": _rsqrt, "square": _square, "pow": _pow, "pow_scalar": _pow_scalar,
    "scalar_pow": _scalar_pow, "hypot": _hypot, "logaddexp": _logaddexp, "logaddexp2": _logaddexp2, "lerp": _lerp,
    "nan_to_num": _nan_to_num, "to": _to, "full_like": _full_like,
    "zeros_like": lambda x: _full_like(x, 0), "ones_like": lambda x: _full_like(x, 1),
}


class ExpressionNamespace:
    """`xp` over symbolic elements: `FUNCTIONS`, then the forwards of declared elementwise operators.

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


def _rounded(name: str) -> Callable[[SymbolicElement], SymbolicElement]:
    function = FUNCTIONS[name]

    def rounded(x: SymbolicElement) -> SymbolicElement:
        if x.dtype != FLOAT32:
            return function(x)
        wide = function(_element_of(x, scalar_ir.cast(x.node, FLOAT64)))
        return _element_of(x, scalar_ir.cast(wide.node, FLOAT32))

    return rounded


class RoundedNamespace(ExpressionNamespace):
    """`ExpressionNamespace` whose transcendental functions of float32 are computed in double and rounded: NumPy's bits
    on small arrays.
    """

    def __init__(self, registry: dict[str, Any]) -> None:
        super().__init__(registry)
        self.__dict__.update((name, _rounded(name)) for name in ROUNDED)


__all__ = ["FUNCTIONS", "ExpressionNamespace", "RoundedNamespace"]
