"""Limits of dtypes."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from . import _dtypes


def finfo(dtyp: Any) -> Any:
    """The limits of a dtype of floating point.

    >>> finfo("float32").bits
    32
    """
    return torch.finfo(_dtypes.dtype(dtyp).torch_dtype)


def iinfo(dtyp: Any) -> Any:
    """The limits of a dtype of integers.

    >>> iinfo("int8").max
    127
    """
    return torch.iinfo(_dtypes.dtype(dtyp).torch_dtype)


__all__ = ["finfo", "iinfo"]
