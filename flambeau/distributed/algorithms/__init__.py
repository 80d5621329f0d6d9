"""Algorithms of processes that compute together: uneven inputs, communication hooks."""

from __future__ import annotations

import importlib
from typing import Any

from ..names import left_out
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]


def __getattr__(name: str) -> Any:
    if name == "_checkpoint":  # stands above `utils`, which has the checkpoints
        return importlib.import_module(f"{__package__}._checkpoint")
    return left_out(f"algorithms.{name}")
