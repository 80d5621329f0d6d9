"""Kernels of operators on arrays (`numpy`, `compiled`); as `torch.backends`, PyTorch's settings of its libraries."""

from __future__ import annotations

from typing import Any

from .. import config


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        from .pytorch import MODULES

        if name in MODULES:
            return MODULES[name]
    raise AttributeError(f"module '{config.module_name}.backends' has no attribute '{name}'")
