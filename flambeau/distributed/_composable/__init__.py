"""`torch.distributed._composable`: functions that change how a module is trained."""

from __future__ import annotations

import importlib
from typing import Any

from .checkpoint_activation import checkpoint
from .contract import _get_registry, contract
from .replicate import replicate

__all__ = ["_get_registry", "checkpoint", "contract", "replicate"]


def __getattr__(name: str) -> Any:
    if name == "fsdp":
        return importlib.import_module(f"{__name__}.fsdp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
