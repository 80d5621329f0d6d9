"""`torch.testing._internal.common_dtype`: groups of dtypes, for tests that run once for each of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes as d

dtype = d.dtype
_FLOATS, _COMPLEX = (d.float32, d.float64), (d.complex64, d.complex128)
_INTEGERS = (d.uint8, d.int8, d.int16, d.int32, d.int64)
_FLOAT8 = (d.float8_e4m3fn, d.float8_e4m3fnuz, d.float8_e5m2, d.float8_e5m2fnuz)
_MPS = (d.float16, d.float32, d.bfloat16, *_INTEGERS)

#: the complex dtype whose parts have a floating point dtype
float_to_corresponding_complex_type_map = {d.float16: d.complex32, d.float32: d.complex64, d.float64: d.complex128}


class _dispatch_dtypes(tuple[dtype, ...]):
    """A tuple of dtypes, to which tuples are added."""

    def __add__(self, other: Any) -> Any:
        return _dispatch_dtypes((*self, *other))


def _group(name: str, *members: dtype) -> Callable[[], Any]:
    """The function without arguments that returns a group."""
    def group() -> Any:
        return _dispatch_dtypes(members)

    group.__name__ = group.__qualname__ = name
    group.__doc__ = f"Return {', '.join(str(each).rpartition('.')[2] for each in members) or 'no dtype'}."
    return group


def _group_and(name: str, *members: dtype) -> Callable[..., Any]:
    """The function of further dtypes that returns a group and them."""
    def group(*further: dtype) -> Any:
        for each in further:
            if not isinstance(each, dtype):
                raise AssertionError(f"Expected dtype to be torch.dtype, got {type(each)}")
        return _dispatch_dtypes((*members, *further))

    group.__name__ = group.__qualname__ = name
    group.__doc__ = f"Return {', '.join(str(each).rpartition('.')[2] for each in members)}, and the given dtypes."
    return group


_GROUPS: dict[str, tuple[dtype, ...]] = {
    "empty_types": (), "double_types": (d.float64, d.complex128), "floating_types": _FLOATS, "complex_types": _COMPLEX,
    "floating_types_and_half": (*_FLOATS, d.float16), "floating_and_complex_types": (*_FLOATS, *_COMPLEX),
    "integral_types": _INTEGERS, "all_types": (*_FLOATS, *_INTEGERS),
    "all_types_and_half": (*_FLOATS, *_INTEGERS, d.float16), "all_types_and_complex": (*_FLOATS, *_INTEGERS, *_COMPLEX),
    "float8_types": _FLOAT8, "all_mps_types": _MPS,
}
empty_types, double_types, floating_types, complex_types, floating_types_and_half, floating_and_complex_types, \
    integral_types, all_types, all_types_and_half, all_types_and_complex, float8_types, all_mps_types = (
        _group(name, *members) for name, members in _GROUPS.items())
floating_types_and, complex_types_and, floating_and_complex_types_and, integral_types_and, all_types_and, \
    all_types_and_complex_and, float8_types_and, all_mps_types_and = (
        _group_and(f"{name}_and", *_GROUPS[name]) for name in (
            "floating_types", "complex_types", "floating_and_complex_types", "integral_types", "all_types",
            "all_types_and_complex", "float8_types", "all_mps_types"))
custom_types = _group_and("custom_types")
all_types_complex_float8_and = _group_and(
    "all_types_complex_float8_and", *_GROUPS["all_types_and_complex"], *_FLOAT8)


def get_all_int_dtypes() -> list[dtype]:
    """Return the dtypes of integers."""
    return list(_INTEGERS)


def get_all_complex_dtypes(include_complex32: bool = False) -> list[dtype]:
    """Return the complex dtypes."""
    return [*(d.complex32,) * include_complex32, *_COMPLEX]


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list[dtype]:
    """Return the dtypes of real floating point numbers."""
    return [*_FLOATS, *(d.float16,) * include_half, *(d.bfloat16,) * include_bfloat16]


def get_all_dtypes(include_half: bool = True, include_bfloat16: bool = True, include_bool: bool = True,
                   include_complex: bool = True, include_complex32: bool = False,
                   include_qint: bool = False) -> list[dtype]:
    """Return all dtypes but those that are left out.

    Raises:
        NotImplementedError: quantized dtypes are asked for.
    """
    if include_qint:
        raise NotImplementedError("get_all_dtypes(include_qint=True): flambeau has no quantized tensors")
    return [*get_all_int_dtypes(), *get_all_fp_dtypes(include_half, include_bfloat16), *(d.bool_,) * include_bool,
            *(get_all_complex_dtypes(include_complex32) if include_complex else ())]


def get_all_math_dtypes(device: str) -> list[dtype]:
    """Return the dtypes of numbers that a kind of device computes with; half precision on CUDA devices only."""
    return [*get_all_int_dtypes(), *get_all_fp_dtypes(device.startswith("cuda"), False), *get_all_complex_dtypes()]


def highest_precision_float(device: Any) -> dtype:
    """Return the floating point dtype of the highest precision that a device has."""
    return d.float32 if str(device).startswith("mps") else d.float64


def highest_precision_complex(device: Any) -> dtype:
    """Return the complex dtype of the highest precision that a device has."""
    return float_to_corresponding_complex_type_map[highest_precision_float(device)]
