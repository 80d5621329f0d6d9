"""Promotion and casting between dtypes of tensors by NumPy's rules."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import flambeau as torch


class DefaultDTypes(NamedTuple):
    """The dtypes of numbers that have none."""

    float_dtype: torch.dtype
    complex_dtype: torch.dtype
    int_dtype: torch.dtype


_default_dtypes: DefaultDTypes | None = None


def default_dtypes() -> DefaultDTypes:
    """The dtypes of numbers: those of `set_default_dtype`, else of the settings `numpy_default_float` and so on.

    >>> default_dtypes().int_dtype is torch.int64
    True
    """
    if _default_dtypes is not None:
        return _default_dtypes
    config = torch._dynamo.config
    return DefaultDTypes(*(getattr(torch, getattr(config, f"numpy_default_{kind}"))
                           for kind in ("float", "complex", "int")))


def set_defaults(defaults: DefaultDTypes) -> None:
    """Replace the dtypes of numbers."""
    global _default_dtypes
    _default_dtypes = defaults


def get_default_dtype_for(dtype: torch.dtype) -> torch.dtype:
    """The default dtype of the kind of a dtype.

    >>> get_default_dtype_for(torch.int8) is torch.int64
    True
    """
    defaults = default_dtypes()
    if dtype == torch.bool:
        return dtype
    if dtype.is_complex:
        return defaults.complex_dtype
    return defaults.float_dtype if dtype.is_floating_point else defaults.int_dtype


_NAMES = ("float16", "float32", "float64", "complex64", "complex128", "uint8", "uint16", "uint32", "uint64", "int8",
          "int16", "int32", "int64", "bool")


@cache
def _numpy_dtypes() -> dict[torch.dtype, np.dtype[Any]]:
    return {getattr(torch, name): np.dtype(name) for name in _NAMES}


@cache
def can_cast_impl(from_torch_dtype: torch.dtype, to_torch_dtype: torch.dtype, casting: str) -> bool:
    """Whether NumPy's rule `casting` allows a cast.

    >>> can_cast_impl(torch.float64, torch.int64, "same_kind")
    False
    """
    dtypes = _numpy_dtypes()
    rule: Any = casting
    return bool(np.can_cast(dtypes[from_torch_dtype], dtypes[to_torch_dtype], rule))


@cache
def _promoted(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    dtypes = _numpy_dtypes()
    common = np.result_type(dtypes[a], dtypes[b])
    return next(dtype for dtype, same in dtypes.items() if same == common)


def result_type_impl(*tensors: Any) -> torch.dtype:
    """The dtype of the result of several tensors.

    >>> result_type_impl(torch.ones(2, dtype=torch.int64), torch.ones(2)) is torch.float64
    True
    """
    dtype: torch.dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = _promoted(dtype, tensor.dtype)
    return dtype


def python_type_for_torch(dtype: torch.dtype) -> type:
    """Python's class of the elements of a dtype.

    >>> python_type_for_torch(torch.float16)
    <class 'float'>
    """
    if dtype.is_floating_point:
        return float
    if dtype.is_complex:
        return complex
    return bool if dtype == torch.bool else int


_SCALARS: dict[type, torch.dtype] = {bool: torch.bool, int: torch.int64, float: torch.float64,
                                     complex: torch.complex128}
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_scalar(x: Any) -> bool:
    """Whether it is a number of Python.

    >>> is_scalar(True), is_scalar([1])
    (True, False)
    """
    return isinstance(x, tuple(_SCALARS))


def is_scalar_or_symbolic(x: Any) -> bool:
    """Whether it is a number of Python, or a symbolic one."""
    return is_scalar(x) or isinstance(x, _SYMBOLIC)


def _dtype_of(x: Any) -> torch.dtype:
    if isinstance(x, torch.Tensor):
        dtype: torch.dtype = x.dtype
        return dtype
    for kind, dtype in _SCALARS.items():
        if isinstance(x, kind):
            return dtype
    return {torch.SymBool: torch.bool, torch.SymInt: torch.int64}.get(type(x), torch.float64)


def is_float_or_fp_tensor(x: Any) -> bool:
    """Whether a number or a tensor is of floating point."""
    return _dtype_of(x).is_floating_point


def is_complex_or_complex_tensor(x: Any) -> bool:
    """Whether a number or a tensor is complex."""
    return _dtype_of(x).is_complex


def _category(dtype: torch.dtype) -> int:
    """0, 1, 2, 3: boolean, integer, of floating point, complex."""
    if dtype == torch.bool:
        return 0
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1


#: functions that do not take numbers
_TENSORS_ONLY = frozenset(("minimum", "maximum", "logaddexp", "logaddexp2", "lcm", "gcd", "hypot", "heaviside", "fmod",
                           "fmin", "fmax", "copysign", "arctan2"))


def nep50_to_tensors(x1: Any, x2: Any, handle_weaks: bool, function_name: str) -> tuple[Any, Any]:
    """Two operands of which a number of Python, by NEP 50, takes the dtype of the other one if that is of its kind.

    Args:
        x1, x2: tensors and numbers.
        handle_weaks: False: a number has its default dtype.
        function_name: PyTorch's function, which may not take numbers.

    Raises:
        OverflowError: an integer does not fit in the dtype.

    >>> nep50_to_tensors(torch.ones(2), 2, True, "fmax")[1].dtype is torch.float32
    True
    """
    def as_tensor(number: Any, dtype: torch.dtype | None = None) -> Any:
        return torch.as_tensor(number, dtype=dtype or get_default_dtype_for(_dtype_of(number)))

    weak = [not isinstance(x, torch.Tensor) for x in (x1, x2)]
    if not handle_weaks or all(weak):
        return tuple(as_tensor(x) if is_weak else x for x, is_weak in zip((x1, x2), weak, strict=True))
    number, tensor = (x1, x2) if weak[0] else (x2, x1)
    own = _dtype_of(number)
    dtype = tensor.dtype if _category(own) <= _category(tensor.dtype) else None
    if own.is_complex and tensor.dtype == torch.float32:
        dtype = torch.complex64
    if _category(own) == _category(tensor.dtype) == 1:
        limits = torch.iinfo(tensor.dtype)
        if not limits.min <= number <= limits.max:
            raise OverflowError(f"Python integer {number} out of bounds for {tensor.dtype}")
    if own != dtype or function_name in _TENSORS_ONLY:
        number = as_tensor(number, dtype)
    return (number, tensor) if weak[0] else (tensor, number)


__all__ = ["DefaultDTypes", "can_cast_impl", "default_dtypes", "get_default_dtype_for", "is_complex_or_complex_tensor",
           "is_float_or_fp_tensor", "is_scalar", "is_scalar_or_symbolic", "nep50_to_tensors", "python_type_for_torch",
           "result_type_impl", "set_defaults"]
