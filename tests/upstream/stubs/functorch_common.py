"""Stub for the helper module of functorch's tests."""

from __future__ import annotations

from typing import Any

from ..placeholder import Placeholder
from .common_utils import expectedFailureIf

__all__ = ["expectedFailureIf"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder(f"functorch's common_utils.{name}", internal=True)
