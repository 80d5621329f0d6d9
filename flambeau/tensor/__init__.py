"""The tensor: storage, views, in-place writes, and how operators are applied to it."""

from __future__ import annotations

from . import functions, methods
from .tensor import Tensor

__all__ = ["Tensor", "functions", "methods"]
