"""`torch._refs._conversions`: casts as functions of a tensor, and complex numbers of two parts."""

from __future__ import annotations

import importlib
from typing import Any

from .._tensor import Tensor
from ..dtypes import complex32

_METHODS = ("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int", "long", "short")
__all__ = ["chalf", "complex", "polar", *_METHODS]  # noqa: F822, PLE0604


def chalf(self: Tensor) -> Tensor:
    """The tensor as complex numbers of 16-bit parts, which flambeau does not compute with."""
    return self.to(complex32)


def __getattr__(name: str) -> Any:
    if name in _METHODS:
        return getattr(Tensor, name)
    if name in ("complex", "polar"):
        return getattr(importlib.import_module(__name__.partition(".")[0]), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
