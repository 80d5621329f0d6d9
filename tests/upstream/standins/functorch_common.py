"""Stand-in for the helpers that lie beside functorch's tests."""

from __future__ import annotations

from typing import Any

from ..absent import Absent
from .common_utils import expectedFailureIf

__all__ = ["expectedFailureIf"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"functorch's common_utils.{name}", internal=True)
