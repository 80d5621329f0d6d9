"""Kernels of operators on arrays (`numpy`, `compiled`); as `torch.backends`, PyTorch's settings of its libraries."""

from __future__ import annotations

from importlib.machinery import PathFinder
from typing import Any

from .. import config


def __getattr__(name: str) -> Any:
    # no file that is not imported yet
    if not name.startswith("_") and PathFinder.find_spec(f"{__name__}.{name}", __path__) is None:
        from .pytorch import MODULES, NAMES, generic

        if name in MODULES:
            return MODULES[name]
        if name in NAMES:
            return NAMES[name]
        if name == "fp32_precision":
            return generic.fp32_precision
    raise AttributeError(f"module '{config.module_name}.backends' has no attribute '{name}'")
