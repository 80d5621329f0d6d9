"""`torch.utils`: activation checkpointing, hooks, pytrees and serialization options."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("_pytree", "checkpoint", "hooks", "serialization")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = ["checkpoint", "hooks", "serialization"]
