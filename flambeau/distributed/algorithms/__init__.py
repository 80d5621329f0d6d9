"""Algorithms of processes that compute together: uneven inputs, communication hooks."""

from __future__ import annotations

from typing import Any

from ..names import left_out
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]


def __getattr__(name: str) -> Any:
    return left_out(f"algorithms.{name}")
