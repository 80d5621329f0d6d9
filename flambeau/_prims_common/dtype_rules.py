"""Kinds of dtypes, Python's types of numbers, and what a computation takes in place of a dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import flambeau as torch

__all__ = [
    "BoolLike", "DeviceLikeType", "Dim", "FloatLike", "FloatWithoutSymFloat", "IntLike", "IntWithoutSymInt", "Number",
    "NumberType", "NumberTypeType", "RealNumberType", "Tensor", "TensorLike", "TensorLikeType",
    "TensorOrNumberLikeType", "TensorSequenceType", "can_safe_cast_to", "check_fp_or_complex",
    "corresponding_complex_dtype", "corresponding_real_dtype", "device_or_default", "dtype_or_default",
    "dtype_to_type", "dtype_to_type_ctor", "get_acc_type", "get_computation_dtype", "get_dtype", "get_higher_dtype",
    "get_higher_type", "is_boolean_dtype", "is_complex_dtype", "is_cpu_scalar_tensor", "is_float_dtype",
    "is_grad_dtype", "is_integer_dtype", "is_low_precision_dtype", "is_weakly_lesser_type", "layout_or_default",
    "number_type", "type_to_dtype"]

Number = (bool, int, float, complex, torch.SymInt, torch.SymFloat, torch.SymBool)
IntLike, FloatLike, BoolLike = (int, torch.SymInt), (float, torch.SymFloat), (bool, torch.SymBool)
Dim, IntWithoutSymInt, FloatWithoutSymFloat = int, int, float
Tensor: Any = torch.Tensor
TensorLike: Any = torch.Tensor
TensorLikeType = torch.Tensor
TensorSequenceType = list[TensorLikeType] | tuple[TensorLikeType, ...]
NumberType = bool | int | float | complex
RealNumberType = bool | int | float
NumberTypeType = type[bool] | type[int] | type[float] | type[complex]
TensorOrNumberLikeType = TensorLikeType | NumberType
DeviceLikeType = str | torch.device | int

_INTEGERS = (torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64)
_LOW_PRECISION = (torch.float16, torch.bfloat16, torch.complex32)
_TO_REAL = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}
_TO_COMPLEX = {torch.bfloat16: torch.complex64, **{real: wide for wide, real in _TO_REAL.items()}}
#: in which dtype elementwise operators compute, and sums are accumulated on a CPU
_COMPUTATION = {torch.bfloat16: torch.float32, torch.float16: torch.float32, torch.complex32: torch.complex64}
_ACCUMULATION = {torch.bfloat16: torch.float64, torch.float16: torch.float64, torch.float32: torch.float64,
                 torch.complex32: torch.complex128, torch.complex64: torch.complex128}
_ORDERED_TYPES = (bool, int, float, complex)
_ORDERED_DTYPES = (
    (torch.bool,), (torch.uint8, torch.int8), (torch.int16,), (torch.int32,), (torch.int64,),
    (torch.float16, torch.bfloat16), (torch.float32,), (torch.float64,), (torch.complex32,), (torch.complex64,),
    (torch.complex128,))


def is_boolean_dtype(dtype: torch.dtype) -> bool:
    """Whether a dtype is bool."""
    return dtype is torch.bool


def is_integer_dtype(dtype: torch.dtype) -> bool:
    """Whether a dtype is one of integers; bool is none."""
    return dtype in _INTEGERS


def is_low_precision_dtype(dtype: torch.dtype) -> bool:
    """Whether a dtype has real numbers of 16 bits."""
    return dtype in _LOW_PRECISION


def is_float_dtype(dtype: torch.dtype) -> bool:
    """Whether a dtype is one of floating point numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: torch.dtype) -> bool:
    """Whether a dtype is one of complex numbers."""
    return dtype in _TO_REAL


def is_grad_dtype(dtype: torch.dtype) -> bool:
    """Whether tensors of a dtype can require gradients."""
    return dtype.is_floating_point or is_complex_dtype(dtype)


def corresponding_real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of a complex dtype's parts."""
    return _TO_REAL[dtype]


def corresponding_complex_dtype(dtype: torch.dtype) -> torch.dtype:
    """The complex dtype with parts of a dtype."""
    return _TO_COMPLEX[dtype]


def dtype_to_type(dtype: torch.dtype) -> type:
    """The type of Python's numbers of a dtype.

    Raises:
        AssertionError: it is no dtype.
        ValueError: it is of another kind.

    >>> import flambeau as torch
    >>> from flambeau._prims_common import dtype_to_type
    >>> dtype_to_type(torch.int16)
    <class 'int'>
    """
    if not isinstance(dtype, torch.dtype):
        raise AssertionError(f"dtype must be torch.dtype, got {type(dtype)}")
    for belongs, kind in ((is_boolean_dtype, bool), (is_integer_dtype, int), (is_float_dtype, float),
                          (is_complex_dtype, complex)):
        if belongs(dtype):
            return kind
    raise ValueError("Invalid dtype!")


def dtype_to_type_ctor(dtype: torch.dtype) -> Callable[[Any], Any]:
    """What converts a number, a symbolic one too, to the type of Python's numbers of a dtype."""
    kind = dtype_to_type(dtype)
    return {int: torch.sym_int, float: torch.sym_float}.get(kind, kind)


def _python_type(t: Any) -> Any:
    return {torch.SymBool: bool, torch.SymInt: int, torch.SymFloat: float}.get(t, t)


def type_to_dtype(typ: type) -> torch.dtype:
    """The dtype of a tensor that is made of one of Python's numbers.

    Raises:
        AssertionError: it is no type.
        ValueError: a type of something else.
    """
    if not isinstance(typ, type):
        raise AssertionError(f"typ must be a type, got {type(typ)}")
    typ = _python_type(typ)
    if typ is bool:
        return torch.bool
    if typ is int:
        return torch.int64
    if typ is float:
        return torch.get_default_dtype()
    if typ is complex:
        return corresponding_complex_dtype(torch.get_default_dtype())
    raise ValueError(f"Invalid type {typ}!")


def number_type(x: Any) -> type:
    """The type of a number; for a symbolic number that of the number it stands for."""
    kind: type = _python_type(type(x))
    return kind


def get_dtype(x: Any) -> torch.dtype:
    """The dtype of a tensor, or of the tensor that a number would become."""
    return x.dtype if isinstance(x, torch.Tensor) else type_to_dtype(type(x))


def check_fp_or_complex(dtype: torch.dtype, fn_name: str, allow_low_precision_dtypes: bool = True) -> None:
    """Check that a dtype has gradients.

    Raises:
        RuntimeError: it has none, or only 16 bits where those are not allowed.
    """
    if not is_grad_dtype(dtype):
        raise RuntimeError(f"{fn_name}: Expected a floating point or complex tensor as input. Got {dtype}")
    if not allow_low_precision_dtypes and is_low_precision_dtype(dtype):
        raise RuntimeError(f"{fn_name}: Half precision dtypes not supported. Got {dtype}")


def _rank(a: type, b: type) -> tuple[int, int]:
    a, b = _python_type(a), _python_type(b)
    if a not in _ORDERED_TYPES or b not in _ORDERED_TYPES:
        raise RuntimeError(f"Expected builtin numeric types, found {a}, {b}")
    return _ORDERED_TYPES.index(a), _ORDERED_TYPES.index(b)


def get_higher_type(a: type, b: type) -> type:
    """The later of two types in the order bool, int, float, complex.

    Raises:
        RuntimeError: a type that is none of these.
    """
    return _ORDERED_TYPES[max(_rank(a, b))]


def is_weakly_lesser_type(a: type, b: type) -> bool:
    """Whether a type does not come after another one in the order bool, int, float, complex.

    Raises:
        RuntimeError: a type that is none of these.
    """
    first, second = _rank(a, b)
    return first <= second


def get_higher_dtype(a: Any, b: Any) -> torch.dtype | None:
    """The lowest dtype that is not below either of two: those of tensors and numbers, or dtypes; None counts for none.

    >>> import flambeau as torch
    >>> from flambeau._prims_common import get_higher_dtype
    >>> get_higher_dtype(torch.float16, torch.bfloat16)
    flambeau.float32
    """
    found = []
    for name, x in (("a", a), ("b", b)):
        if x is None or isinstance(x, torch.dtype):
            found.append(x)
        elif isinstance(x, (torch.Tensor, *Number)):
            found.append(get_dtype(x))
        else:
            raise AssertionError(f"{name} must be None, torch.dtype, TensorLike, or Number, got {type(x)}")
    first, second = found
    if first is second or second is None:
        return first
    if first is None:
        return second
    levels = [next(i for i, dtypes in enumerate(_ORDERED_DTYPES) if each in dtypes) for each in (first, second)]
    if levels[0] == levels[1]:
        return _ORDERED_DTYPES[levels[0] + 1][0]
    return first if levels[0] > levels[1] else second


def can_safe_cast_to(*, cast_to: torch.dtype, cast_from: torch.dtype) -> bool:
    """Whether a dtype's kind is not above another one's.

    Raises:
        ValueError: a dtype of none of these kinds.
    """
    for belongs in (is_complex_dtype, is_float_dtype, is_integer_dtype, is_boolean_dtype):
        if belongs(cast_to):
            return True
        if belongs(cast_from):
            return False
    raise ValueError(f"Received unknown dtypes {cast_to}, {cast_from}!")


def get_computation_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which elementwise operators compute."""
    return _COMPUTATION.get(dtype, dtype)


def get_acc_type(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """The dtype in which sums are accumulated."""
    return _ACCUMULATION.get(dtype, dtype) if device.type == "cpu" else get_computation_dtype(dtype)


def is_cpu_scalar_tensor(a: object) -> TypeGuard[torch.Tensor]:
    """Whether a value is a tensor on the CPU without dimensions."""
    return isinstance(a, torch.Tensor) and a.ndim == 0 and a.device.type == "cpu"


def dtype_or_default(dtype: torch.dtype | None) -> torch.dtype:
    """A dtype; the default one for None."""
    return torch.get_default_dtype() if dtype is None else dtype


def device_or_default(device: Any) -> Any:
    """A device; the CPU for None."""
    return torch.device("cpu") if device is None else device


def layout_or_default(layout: torch.layout | None) -> torch.layout:
    """A layout; strided for None."""
    return torch.strided if layout is None else layout
