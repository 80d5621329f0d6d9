"""Kernels of operators on arrays (`numpy`, `compiled`); as `torch.backends`, PyTorch's settings of its libraries."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from .. import config


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:  # no module that is not imported yet
        from .pytorch import MODULES, NAMES, generic

        if name in MODULES:
            return MODULES[name]
        if name in NAMES:
            return NAMES[name]
        if name == "fp32_precision":
            return generic.fp32_precision
    raise AttributeError(f"module '{config.module_name}.backends' has no attribute '{name}'")
