"""NumPy's universal functions: elementwise, with casts by `dtype` and `casting`, and a result in `out`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import flambeau as torch

from . import _dtypes_impl, _util
from ._normalizations import (
    ArrayLike,
    ArrayLikeOrScalar,
    CastingModes,
    DTypeLike,
    OutArray,
    Unsupported,
    normalizer,
)


def _finished(result: Any, out: Any, casting: str) -> Any:
    if out is None:
        return result
    return torch.broadcast_to(_util.typecast_tensor(result, out.dtype.torch_dtype, casting), out.shape)


def _as_dtype(x: Any, dtype: torch.dtype, casting: str) -> Any:
    if isinstance(x, torch.Tensor):
        return _util.typecast_tensor(x, dtype, casting)
    return torch.as_tensor(x, dtype=dtype)


#: NumPy's name -> PyTorch's, of functions whose numbers are converted by NEP 50
_NEP50 = {name: name for name in [
    "add", "subtract", "multiply", "floor_divide", "true_divide", "divide", "remainder", "bitwise_and",
    "bitwise_or", "bitwise_xor", "hypot", "arctan2", "logaddexp", "logaddexp2", "heaviside", "copysign", "fmax",
    "minimum", "fmin", "maximum", "fmod", "gcd", "lcm",
]} | {
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "mod": "remainder", "power": "pow"}
_OTHER_BINARY = {name: name for name in [
    "float_power", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor",
    "nextafter", "not_equal",
]} | {"equal": "eq"}


def _binary_ufunc(name: str, torch_name: str, nep50: bool) -> Callable[..., Any]:
    compute = getattr(torch, torch_name)

    def ufunc(x1: ArrayLikeOrScalar, x2: ArrayLikeOrScalar, /, out: OutArray = None, *, where: Unsupported = True,
              casting: CastingModes = "same_kind", order: Unsupported = "K", dtype: DTypeLike = None,
              subok: Unsupported = False, signature: Unsupported = None, extobj: Unsupported = None) -> Any:
        if dtype is not None:
            x1, x2 = _as_dtype(x1, dtype, casting), _as_dtype(x2, dtype, casting)
        elif isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor):
            x1, x2 = _util.typecast_tensors((x1, x2), _dtypes_impl.result_type_impl(x1, x2), casting)
        else:
            x1, x2 = _dtypes_impl.nep50_to_tensors(x1, x2, nep50, torch_name)
        return _finished(compute(x1, x2), out, casting)

    ufunc.__name__ = ufunc.__qualname__ = name
    ufunc.__doc__ = f"NumPy's `{name}`, by `torch.{torch_name}`."
    wrapped: Callable[..., Any] = normalizer(ufunc)
    return wrapped


@normalizer
def matmul(x1: ArrayLike, x2: ArrayLike, /, out: OutArray = None, *, casting: CastingModes = "same_kind",
           order: Unsupported = "K", dtype: DTypeLike = None, subok: Unsupported = False,
           signature: Unsupported = None, extobj: Unsupported = None, axes: Unsupported = None,
           axis: Unsupported = None) -> Any:
    """The matrix product.

    >>> import flambeau._numpy as np
    >>> np.matmul([[1, 2]], [[3], [4]])
    torch.ndarray([[11]])
    """
    common = _dtypes_impl.result_type_impl(x1, x2) if dtype is None else dtype
    x1, x2 = _util.typecast_tensors((x1, x2), common, casting)
    if common == torch.bool:
        result = torch.matmul(x1.to(torch.uint8), x2.to(torch.uint8)).to(torch.bool)
    elif common == torch.float16:
        result = torch.matmul(x1.float(), x2.float()).to(torch.float16)  # sums are rounded once
    else:
        result = torch.matmul(x1, x2)
    return _finished(result, out, casting)


@normalizer
def ldexp(x1: ArrayLikeOrScalar, x2: ArrayLikeOrScalar, /, out: OutArray = None, *, where: Unsupported = True,
          casting: CastingModes = "same_kind", order: Unsupported = "K", dtype: DTypeLike = None,
          subok: Unsupported = False, signature: Unsupported = None, extobj: Unsupported = None) -> Any:
    """x1 * 2 ** x2, in the dtype of `x1`.

    Raises:
        ValueError: `x2` is no integer.
    """
    if dtype is not None:
        x1 = _as_dtype(x1, dtype, casting)
    elif not isinstance(x1, torch.Tensor):
        x1 = _util.cast_int_to_float(torch.as_tensor(x1))
    x2 = torch.as_tensor(x2)
    if _dtypes_impl._category(x2.dtype) != 1:
        raise ValueError("ldexp 2nd arg must be integer")
    result = torch.ldexp(x1, x2)
    return _finished(result.to(torch.float16) if x1.dtype == torch.float16 else result, out, casting)


@normalizer
def _divmod(x1: ArrayLike, x2: ArrayLike, out1: OutArray = None, out2: OutArray = None, /, out: Any = (None, None), *,
            where: Unsupported = True, casting: CastingModes = "same_kind", order: Unsupported = "K",
            dtype: DTypeLike = None, subok: Unsupported = False, signature: Unsupported = None,
            extobj: Unsupported = None) -> Any:
    """Quotients, rounded down, and remainders.

    >>> import flambeau._numpy as np
    >>> np.divmod([7, -7], 2)
    (torch.ndarray([ 3, -4]), torch.ndarray([1, 1]))
    """
    given = builtins.sum(x is not None for x in (out1, out2))
    if given == 1:
        raise ValueError("both out1 and out2 need to be provided")
    if given == 2 and any(x is not None for x in out):
        raise TypeError("cannot specify 'out' as both a positional and keyword argument")
    outputs = (out1, out2) if given else out
    common = _dtypes_impl.result_type_impl(x1, x2) if dtype is None else dtype
    x1, x2 = _util.typecast_tensors((x1, x2), common, casting)
    return tuple(_finished(result, each, casting) for result, each in zip((x1 // x2, x1 % x2), outputs, strict=True))


def modf(x: Any, /, *args: Any, **kwds: Any) -> Any:
    """Fractional and integral parts: the remainder of a division by 1, and its quotient."""
    quotient, remainder = _divmod(x, 1, *args, **kwds)
    return remainder, quotient


#: NumPy's name -> PyTorch's, of functions that make numbers of floating point of integers
_TO_FLOAT = {name: name for name in (
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh", "deg2rad", "exp", "exp2", "expm1",
    "log", "log10", "log1p", "log2", "rad2deg", "reciprocal", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)} | {"radians": "deg2rad", "degrees": "rad2deg"}
_SAME_DTYPE = {name: name for name in (
    "bitwise_not", "ceil", "floor", "isfinite", "isinf", "isnan", "logical_not", "negative", "sign", "signbit",
)} | {"fabs": "absolute", "invert": "bitwise_not", "conjugate": "conj_physical", "conj": "conj_physical",
      "fix": "round", "rint": "round"}


def _unary_ufunc(name: str, compute: Callable[[Any], Any], to_float: bool) -> Callable[..., Any]:
    def ufunc(x: ArrayLike, /, out: OutArray = None, *, where: Any = True, casting: CastingModes = "same_kind",
              order: Any = "K", dtype: DTypeLike = None, subok: Unsupported = False, signature: Any = None,
              extobj: Any = None) -> Any:
        if dtype is not None:
            x = _util.typecast_tensor(x, dtype, casting)
        return _finished(compute(_util.cast_int_to_float(x) if to_float else x), out, casting)

    ufunc.__name__ = ufunc.__qualname__ = name
    ufunc.__doc__ = f"NumPy's `{name}`."
    wrapped: Callable[..., Any] = normalizer(ufunc)
    return wrapped


def _absolute(x: Any) -> Any:
    return x if x.dtype == torch.bool else torch.absolute(x)


_binary = [*sorted({*_NEP50, *_OTHER_BINARY}), "divmod", "modf", "matmul", "ldexp"]
_unary = sorted({*_TO_FLOAT, *_SAME_DTYPE, "abs", "absolute", "cbrt", "positive"})
globals().update({name: _binary_ufunc(name, other, True) for name, other in _NEP50.items()})
globals().update({name: _binary_ufunc(name, other, False) for name, other in _OTHER_BINARY.items()})
globals().update({name: _unary_ufunc(name, getattr(torch, other), True) for name, other in _TO_FLOAT.items()})
globals().update({name: _unary_ufunc(name, getattr(torch, other), False) for name, other in _SAME_DTYPE.items()})
globals()["cbrt"] = _unary_ufunc("cbrt", lambda x: torch.pow(x, 1 / 3), True)
globals()["positive"] = _unary_ufunc("positive", lambda x: +x, False)
globals()["absolute"] = globals()["abs"] = _unary_ufunc("absolute", _absolute, False)
divmod = _divmod

__all__ = _binary + _unary  # noqa: PLE0605
