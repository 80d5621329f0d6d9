"""`torch.distributed._composable`: functions that change how a module is trained."""

from __future__ import annotations

import importlib
from typing import Any

from ..names import left_out


def __getattr__(name: str) -> Any:
    if name == "fsdp":
        return importlib.import_module(f"{__name__}.fsdp")
    return getattr(left_out("_composable"), name)
