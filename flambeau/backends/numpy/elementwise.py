"""Elementwise primitives: NumPy's ufuncs under PyTorch's names, and functions that NumPy lacks.

The second operand of a binary primitive may be a Python scalar, which does not promote the array (NumPy's rule since
version 2).
"""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

import numpy as np
from numpy import asarray, float32, float64, ndarray

from ... import dtypes
from ..bit_views import bits_of, toggle
from ..compiled import special_function as compiled_special
from ..compiled.thresholds import SINGLE_USE, threshold_of
from ..special_functions import SPECIAL
from .memory import address, check_scalar_fits, match_layout, owner

# ----- parts of complex numbers -----


def _is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _real(x: Any) -> Any:
    return x.real if x.dtype.kind == "c" else x


def _imag(x: Any) -> Any:
    return x.imag


def _view_as_real(x: Any) -> Any:
    if bits_of(x)[0]:
        raise RuntimeError("view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate "
                           "tensor so you can view it as real, use self.resolve_conj(); however, be warned that the "
                           "resulting tensor will NOT alias the original.")
    return x[..., np.newaxis].view(f"f{x.itemsize // 2}")


_COMPLEX_OF = {d.numpy: d.to_complex().numpy for d in (dtypes.float16, dtypes.float32, dtypes.float64)}


def _view_as_complex(x: Any) -> Any:
    if not x.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    item = x.itemsize
    if x.strides[-1] != item and x.size:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if x.size and any(s % (2 * item) and n > 1 for s, n in zip(x.strides[:-1], x.shape[:-1], strict=True)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if x.size and (address(x) - address(owner(x))) // item % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return x.view(_COMPLEX_OF[x.dtype])[..., 0]


def _complex(real: Any, imag: Any) -> Any:
    _check_complex_parts("imag", real, imag)
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape),
                   np.complex128 if real.dtype == np.float64 else np.complex64)
    out.real, out.imag = real, imag
    return match_layout(dtypes.cast(out, _COMPLEX_OF[real.dtype]), real, imag)


def _polar(length: Any, angle: Any) -> Any:
    _check_complex_parts("angle", length, angle)
    if length.dtype == np.float16:
        raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
    return _complex(length * np.cos(angle), length * np.sin(angle))


def _check_complex_parts(name: str, first: Any, second: Any) -> None:
    for a in (first, second):
        if a.dtype.kind != "f":
            names = [dtypes.of(x.dtype).scalar_name for x in (first, second)]
            raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                               f"{names[0]} and {names[1]}")
    if first.dtype != second.dtype:
        raise RuntimeError(f"Expected object of scalar type {dtypes.of(first.dtype).scalar_name} but got scalar type "
                           f"{dtypes.of(second.dtype).scalar_name} for second argument")


def _angle(x: Any) -> Any:
    if x.dtype.kind == "c":
        return np.arctan2(x.imag, x.real)
    return np.where(x < 0, x.dtype.type(np.pi), np.where(np.isnan(x), x, x.dtype.type(0)))


# ----- signs -----

def _sign(x: Any) -> Any:
    if x.dtype.kind == "b":
        return np.array(x, copy=True)
    if x.dtype.kind == "f":
        if not x.ndim:
            return x.dtype.type(1 if x > 0 else -1 if x < 0 else 0)
        return np.subtract(x > 0, x < 0, dtype=x.dtype)  # 0 at nan
    return np.sign(x)


def _sgn(x: Any) -> Any:
    dtype = x.dtype
    if dtype.kind == "f" and not x.ndim:
        return dtype.type(1 if x > 0 else -1 if x < 0 else 0)
    if dtype.kind != "c":
        return _sign(x)
    out, length = np.array(x), np.abs(x)
    for part in (out.real, out.imag):  # infinite numbers have parts that are NaN
        np.divide(part, length, part, where=length != 0)
    return out


# ----- rounding; integers are copied -----

def _round_with(ufunc: Any) -> Any:
    def rounded(x: Any) -> Any:
        return np.array(x, copy=True) if x.dtype.kind in "iub" else ufunc(x)

    function: Any = rounded
    function.of_floats = ufunc  # what fast paths call
    return function


# ----- division -----

def _is_integer_division(x: Any, y: Any) -> bool:
    """Return whether x / y, of arrays or scalars, is an integer division.

    Raises:
        RuntimeError: it is, and y contains 0 (PyTorch's text).
    """
    for a in (x, y):
        if a.dtype.kind == "f" if hasattr(a, "dtype") else isinstance(a, float):
            return False
    if not np.logical_and.reduce(y, None) and (not hasattr(x, "size") or x.size):
        raise RuntimeError("ZeroDivisionError")
    return True


def _floor_divide(x: Any, y: Any, out: Any = None) -> Any:
    _is_integer_division(x, y)
    return np.floor_divide(x, y, out)


def _trunc_divide(x: Any, y: Any) -> Any:
    if not _is_integer_division(x, y):
        return np.trunc(np.true_divide(x, y))
    quotient = np.floor_divide(x, y)
    if quotient.dtype.kind == "u":
        return quotient
    inexact = np.not_equal(quotient * y, x)
    return quotient + np.logical_and(inexact, quotient < 0)


def _trunc_divide_narrow(x: Any, y: Any) -> Any:
    quotient = dtypes.cast(np.true_divide(dtypes.widen(x), dtypes.widen(y)), x.dtype)
    return dtypes.cast(np.trunc(dtypes.widen(quotient)), x.dtype)


def _remainder(x: Any, y: Any, out: Any = None) -> Any:
    if _is_integer_division(x, y):
        return np.remainder(x, y, out)
    left = np.remainder(x, y, out)
    is_zero = left == 0
    if np.any(is_zero):  # PyTorch: zero has the dividend's sign, NumPy: the divisor's
        return np.copysign(left, np.where(is_zero, x, left), out)
    return left


def _into(result: Any, out: Any) -> Any:
    """Copy a result into `out` where it is given."""
    if out is None:
        return result
    out[...] = result
    return out


def _fmod(x: Any, y: Any, out: Any = None) -> Any:
    _is_integer_division(x, y)
    return np.fmod(x, y, out)


def _reciprocal(x: Any) -> Any:
    return 1 / x


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


# ----- powers -----

def _pow(x: Any, y: Any, out: Any = None) -> Any:
    if not hasattr(y, "dtype"):
        return _into(_pow_scalar(x, y), out)
    if x.dtype.kind in "iu" and y.dtype.kind in "iu":
        return _into(_integer_pow(x, y), out)
    if x.dtype.kind == "c" and not np.all(x):  # 0ʸ = exp(y log 0) is NaN for y = 0, as in PyTorch's vectors
        return _into(np.where(x == 0, np.exp(y * np.log(x)), np.power(x, y)), out)
    return np.power(x, y, out)


def _integer_pow(x: Any, y: Any) -> Any:
    """Return integer powers: they wrap around, and a negative exponent gives 1, -1 or 0 (PyTorch's rule)."""
    negative = y < 0
    if not np.any(negative):
        return np.power(x, y)
    result = np.power(x, np.where(negative, 0, y))
    ones = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0))
    return np.where(negative, ones, result).astype(result.dtype)


def _pow_scalar(x: Any, exponent: Any) -> Any:
    if not x.ndim:
        x = x[()]  # NumPy scalars are faster than 0-d arrays
    if exponent == 2:
        return x * x
    if exponent == 1:
        return np.array(x, copy=True)
    if exponent == 3:
        return x * x * x
    kind = x.dtype.kind
    if kind in "iub":
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return np.power(x, x.dtype.type(exponent)) if kind != "b" else np.logical_or(x, exponent == 0)
    if kind == "f":
        if exponent == 0.5:
            return np.sqrt(x)
        if exponent == -0.5:
            return 1 / np.sqrt(x)
        if exponent == -1:
            return 1 / x
        if exponent == -2:
            return 1 / (x * x)
    return np.power(x, exponent)


def _scalar_pow(base: Any, exponent: Any) -> Any:
    kind = exponent.dtype.kind
    if kind == "b":
        return np.logical_or(base, np.logical_not(exponent))
    if kind in "iu":
        return _integer_pow(np.asarray(base).astype(exponent.dtype), exponent)
    if base == 2 and kind == "f":
        return np.exp2(exponent)
    if kind == "c" and not base:
        return np.exp(exponent * np.log(exponent.dtype.type(0)))
    return np.power(exponent.dtype.type(base), exponent)


# ----- exponentials, logarithms, trigonometry -----

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def _widened(x: Any) -> Any:
    """Return the array in float64; "K" would put expanded dimensions last."""
    return x.astype(F64, "C" if 0 in x.strides else "K")


def _of_one(function: Any, x: Any) -> Any:
    """The function of a NumPy scalar, or of a 0-d array, of float32; NumPy computes with float64 scalars the fastest.

    >>> import numpy as np
    >>> _of_one(np.exp, np.array(1, np.float32))
    array(2.7182817, dtype=float32)
    """
    value = float(function(float64(x)))
    return asarray(value, F32) if x.__class__ is ndarray else float32(value)


def _correctly_rounded(function: Any, limit: int) -> Any:
    """Return a function that is correctly rounded for float32 arrays up to a size.

    NumPy's float32 functions are off by up to two units in the last place, which shows in printed numbers; PyTorch's
    by one at most. Rounding the float64 result is exact, but 2 to 40 times slower per element: it is used where the
    cost of the call dominates.
    """
    def rounded(x: Any) -> Any:
        n = x.size
        if n <= limit and x.dtype is F32:
            if n == 1 and not x.ndim and (x.__class__ is ndarray or x.__class__ is float32):
                return _of_one(function, x)
            return function(x.astype(F64) if x.flags.forc else _widened(x)).astype(F32)
        return function(x)

    rounded.__name__ = function.__name__
    return rounded


class TooLargeError(RuntimeError):
    """The array is large enough for a compiled kernel."""


def _limited(function: Any, limit: int, kernel_from: list[int]) -> Any:
    """Return `_correctly_rounded` for callers that have a compiled kernel: arrays of its size raise TooLargeError."""
    def rounded(x: Any) -> Any:
        n = x.size
        if n > kernel_from[0]:
            raise TooLargeError
        if n <= limit and x.dtype is F32:
            if n == 1 and not x.ndim and (x.__class__ is ndarray or x.__class__ is float32):
                return _of_one(function, x)
            return function(x.astype(F64) if x.flags.forc else _widened(x)).astype(F32)
        return function(x)

    rounded.__name__ = function.__name__
    return rounded


def _exp2(x: Any) -> Any:
    return np.exp(x * float(np.log(2))) if x.dtype.kind == "c" else np.exp2(x)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _logaddexp(x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    swapped = x.real < y.real
    larger, smaller = np.where(swapped, y, x), np.where(swapped, x, y)
    same = np.logical_and(x == y, np.isinf(x.real))
    return np.where(same, x, larger + np.log1p(np.exp(smaller - larger)))


def _frexp(x: Any) -> Any:
    mantissa, exponent = np.frexp(x)
    return mantissa, np.asarray(exponent, np.int32)


# ----- interpolation, adjacent floats, non-finite elements -----

def _lerp(input: Any, end: Any, weight: Any) -> Any:
    for what, a in (("end", end), ("weight", weight)):
        if hasattr(a, "dtype") and a.dtype != input.dtype:
            raise RuntimeError(f"expected dtype {_C_NAMES[input.dtype.name]} for `{what}` but got dtype "
                               f"{_C_NAMES[a.dtype.name]}")
    if weight.__class__ is complex and input.dtype.kind == "f":
        check_scalar_fits(weight, dtypes.of(input.dtype))
    span = end - input
    small = abs(weight) < 0.5
    # computed from the nearer end, so that both ends are exact
    if small.__class__ is bool:
        return input + weight * span if small else end - span * (1 - weight)
    return np.where(small, input + weight * span, end - span * (1 - weight))


_C_NAMES = {"float32": "float", "float64": "double", "complex64": "c10::complex<float>",
            "complex128": "c10::complex<double>", "float16": "c10::Half"}


def _nextafter(x: Any, y: Any) -> Any:
    if x.dtype != dtypes.BFLOAT16:
        return np.nextafter(x, y)
    wide_x, wide_y = np.broadcast_arrays(dtypes.widen(x), dtypes.widen(y))
    bits = np.ascontiguousarray(dtypes.to_bfloat16(wide_x)).view(np.int16)
    away = np.where((wide_y > wide_x) == (wide_x > 0), 1, -1).astype(np.int16)
    tiny = np.where(wide_y > 0, 0x0001, -0x7FFF).astype(np.int16)
    moved = np.where(wide_x == 0, tiny, bits + away)
    result = np.where(wide_x == wide_y, np.ascontiguousarray(dtypes.to_bfloat16(wide_y)).view(np.int16), moved)
    result = np.where(np.isnan(wide_x) | np.isnan(wide_y), 0x7FC0, result).astype(np.int16)
    return result.reshape(-1).view(dtypes.BFLOAT16).reshape(wide_x.shape)


@functools.cache
def _finite_range(dtype: np.dtype) -> tuple[float, float]:
    limits = dtypes.finfo(dtypes.of(dtype))
    return limits.min, limits.max


def _nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind in "iub":
        return np.array(x, copy=True)
    least, largest = _finite_range(x.dtype)
    values = 0.0 if nan is None else nan, largest if posinf is None else posinf, least if neginf is None else neginf
    wide = dtypes.widen(x)
    if wide.dtype.kind == "c":
        out = np.empty_like(wide)
        out.real, out.imag = _finite(wide.real, *values), _finite(wide.imag, *values)
    else:
        out = _finite(wide, *values)
    return dtypes.cast(out, x.dtype)


def _finite(x: Any, nan: float, posinf: float, neginf: float) -> Any:
    of = x.dtype.type
    return np.where(np.isnan(x), of(nan), np.where(x == np.inf, of(posinf), np.where(x == -np.inf, of(neginf), x)))


# ----- special functions; their kernels are imported on first use -----

#: special functions of one input that also have compiled kernels
_COMPILED = frozenset(("digamma", "erf", "erfc", "erfinv", "lgamma"))


def _special(name: str) -> Any:
    kernel = None

    def call(*args: Any) -> Any:
        nonlocal kernel
        if name in _COMPILED and args[0].__class__ is np.ndarray and args[0].size > SINGLE_USE[0]:
            result = compiled_special(name, args[0])
            if result is not None:
                return result
        if kernel is None:
            from ...kernels import special

            kernel = getattr(special, name)
        return match_layout(kernel(*args), *args)

    call.__name__ = name
    return call


def _where(condition: Any, input: Any, other: Any) -> Any:
    return match_layout(np.where(condition, input, other), condition, input, other)


_SAME = ("sqrt", "square", "maximum", "minimum", "isnan", "isfinite", "isinf", "isreal", "logical_not",
         "logical_and", "logical_or", "logical_xor", "signbit", "hypot", "fmax", "fmin", "copysign", "logaddexp2",
         "gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor")
_RENAMED = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "true_divide", "neg": "negative",
    "abs": "absolute", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "bitwise_not": "invert", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}

PRIMITIVES: dict[str, Any] = {name: getattr(np, name) for name in _SAME}
PRIMITIVES |= {name: getattr(np, numpy_name) for name, numpy_name in _RENAMED.items()}
PRIMITIVES |= {name: _special(name) for name in SPECIAL}
#: transcendental functions, and the size up to which they are correctly rounded in float32
_EXACT: dict[str, tuple[Any, int]] = {name: (getattr(np, name), 4096) for name in (
    "exp", "log", "log2", "log10", "log1p", "expm1", "tan", "sinh", "cosh", "tanh")}
_EXACT |= {"a" + name: (getattr(np, "arc" + name), 4096) for name in ("sin", "cos", "tan", "tanh")}
_EXACT |= {name: (getattr(np, name), 256) for name in ("sin", "cos")}  # the float64 functions are slow
_EXACT |= {"exp2": (_exp2, 4096), "sigmoid": (_sigmoid, 4096)}
PRIMITIVES |= {name: _correctly_rounded(function, limit) for name, (function, limit) in _EXACT.items()}
#: the same for arrays smaller than a compiled kernel's threshold; others raise TooLargeError
LIMITED = {name: _limited(function, limit, threshold_of(name)) for name, (function, limit) in _EXACT.items()}
PRIMITIVES |= {name: _round_with(ufunc) for name, ufunc in (
    ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.rint))}
PRIMITIVES |= {
    "conj": _conj, "toggle_conjugate": partial(toggle, conjugate=True),
    "toggle_negative": partial(toggle, negative=True), "real": _real, "imag": _imag, "is_complex": _is_complex,
    "view_as_real": _view_as_real,
    "view_as_complex": _view_as_complex, "complex": _complex, "polar": _polar, "angle": _angle, "sign": _sign,
    "sgn": _sgn, "floor_divide": _floor_divide, "trunc_divide": _trunc_divide,
    "trunc_divide_narrow": _trunc_divide_narrow, "remainder": _remainder,
    "fmod": _fmod, "reciprocal": _reciprocal, "rsqrt": _rsqrt, "pow": _pow, "pow_scalar": _pow_scalar,
    "scalar_pow": _scalar_pow, "logaddexp": _logaddexp, "frexp": _frexp,
    "where": _where, "lerp": _lerp, "nextafter": _nextafter, "nan_to_num": _nan_to_num,
}
