"""`torch.utils`: activation checkpointing, data loading, hooks, pytrees and serialization options."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = (
    "_contextlib", "_import_utils", "_mode_utils", "_python_dispatch", "_pytree", "_triton", "benchmark",
    "checkpoint", "collect_env", "cpp_extension", "data", "dlpack", "flop_counter", "hooks", "model_zoo",
    "module_tracker", "serialization", "tensorboard", "weak",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("set_module", "swap_tensors"):
        return getattr(importlib.import_module(f"{__name__}.swapping"), name)
    if name == "deterministic":
        return importlib.import_module(f"{__name__}.deterministic")
    if name == "_sympy":
        return importlib.import_module(f"{__package__.partition('.')[0]}.environment.absent_modules").MODULES[
            "utils._sympy"]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = ["checkpoint", "data", "hooks", "serialization"]
