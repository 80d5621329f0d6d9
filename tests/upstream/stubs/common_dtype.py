"""Stub for PyTorch's lists of dtypes."""

from __future__ import annotations

from typing import Any

import torch

_FLOATS = (torch.float32, torch.float64)
_NARROW = (torch.float16, torch.bfloat16)
_COMPLEX = (torch.complex64, torch.complex128)
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def floating_types() -> tuple[Any, ...]:
    """The two plain floating dtypes."""
    return _FLOATS


def floating_types_and(*more: Any) -> tuple[Any, ...]:
    """The plain floating dtypes, and others."""
    return (*_FLOATS, *more)


def floating_and_complex_types() -> tuple[Any, ...]:
    """Plain floating and complex dtypes."""
    return (*_FLOATS, *_COMPLEX)


def floating_and_complex_types_and(*more: Any) -> tuple[Any, ...]:
    """Plain floating and complex dtypes, and others."""
    return (*_FLOATS, *_COMPLEX, *more)


def integral_types() -> tuple[Any, ...]:
    """Whole numbers."""
    return _WHOLE


def all_types() -> tuple[Any, ...]:
    """Plain floating dtypes and whole numbers."""
    return (*_FLOATS, *_WHOLE)


def all_types_and_complex() -> tuple[Any, ...]:
    """Plain floating and complex dtypes and whole numbers."""
    return (*_FLOATS, *_WHOLE, *_COMPLEX)


def integral_types_and(*more: Any) -> tuple[Any, ...]:
    """Whole numbers, and others."""
    return (*_WHOLE, *more)


def all_types_and(*more: Any) -> tuple[Any, ...]:
    """Floating dtypes and whole numbers, and others."""
    return (*_FLOATS, *_WHOLE, *more)


def all_types_and_complex_and(*more: Any) -> tuple[Any, ...]:
    """Everything plain, and others."""
    return (*_FLOATS, *_WHOLE, *_COMPLEX, *more)


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list[Any]:
    """Floating dtypes of all widths."""
    return [*_FLOATS, *_NARROW[:include_half], *_NARROW[1:][:include_bfloat16]]


def get_all_dtypes(**_which: bool) -> list[Any]:
    """Every dtype."""
    return [torch.bool, *_WHOLE, *_NARROW, *_FLOATS, *_COMPLEX]
