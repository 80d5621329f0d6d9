"""Elementwise primitives: NumPy's ufuncs under flambeau's names, and what they lack."""

from __future__ import annotations

from typing import Any

import numpy as np


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _real(x: Any) -> Any:
    return x.real if x.dtype.kind == "c" else x


def _reciprocal(x: Any) -> Any:
    return 1 / x


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _sign(x: Any) -> Any:
    return x if x.dtype.kind == "b" else np.sign(x)


def _is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def _pow(x: Any, y: Any) -> Any:
    if x.__class__ is np.ndarray and x.dtype.kind in "iu":
        return _integer_pow(x, y)
    return np.power(x, y)


def _integer_pow(x: Any, y: Any) -> Any:
    """Integer powers wrap around, and a negative exponent gives 1, -1 or 0 (PyTorch's rule)."""
    y = np.asarray(y, x.dtype)
    negative = y < 0
    if not np.any(negative):
        return np.power(x, y)
    result = np.power(x, np.where(negative, 0, y))
    odd = (y & 1).astype(bool)
    ones = np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0))
    return np.where(negative, ones, result).astype(x.dtype)


def _pow_number(x: Any, exponent: Any) -> Any:
    if exponent == 2:
        return x * x
    if exponent == 1:
        return np.array(x, copy=True)
    if exponent == 0.5:
        return np.sqrt(x)
    if exponent == 3:
        return x * x * x
    if exponent == -1:
        return 1 / x
    if exponent == -2:
        return 1 / (x * x)
    return _pow(x, exponent)


def _number_pow(base: Any, exponent: Any) -> Any:
    if exponent.dtype.kind in "iu":
        return _integer_pow(np.asarray(base, exponent.dtype), exponent)
    return np.power(exponent.dtype.type(base), exponent)


def _number_pow_gradient(g: Any, exponent: Any, out: Any, base: Any) -> Any:
    import math

    if base == 0:
        return np.where(exponent >= 0, np.zeros_like(g), g * (out * -math.inf))
    logarithm = math.log(base) if not isinstance(base, complex) and base > 0 else np.log(exponent.dtype.type(base))
    return g * (out * logarithm)


_SAME = ("exp", "log", "log2", "log10", "log1p", "expm1", "sqrt", "square", "sin", "cos", "tan", "sinh", "cosh",
            "tanh", "floor", "ceil", "trunc", "maximum", "minimum", "where", "isnan", "isfinite", "isinf",
            "logical_not", "logical_and", "logical_or", "logical_xor", "signbit", "exp2", "arctan2", "hypot",
            "fmax", "fmin", "fmod", "copysign", "nextafter", "logaddexp", "logaddexp2", "ldexp", "heaviside",
            "angle")

PRIMITIVES: dict[str, Any] = {name: getattr(np, name) for name in _SAME}
PRIMITIVES.update({
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "neg": np.negative,
    "abs": np.absolute, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "bitwise_not": np.invert,
    "conj": _conj, "real": _real, "reciprocal": _reciprocal, "rsqrt": _rsqrt, "sign": _sign,
    "is_complex": _is_complex, "pow": _pow, "pow_number": _pow_number, "number_pow": _number_pow,
    "number_pow_gradient": _number_pow_gradient,
})
