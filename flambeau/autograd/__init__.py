"""The graph: nodes, the engine that runs them backward, and the modes that decide what is recorded.

`torch.autograd`'s own names are here too; those that are built on tensors are fetched from
above when first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .interface import backward, grad
from .modes import enable_grad, inference_mode, no_grad, set_grad_enabled

_ABOVE = {"Function": "flambeau.tensor.custom", "Variable": "flambeau.autograd.variable"}
_MODULES = ("anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph", "variable")


def __getattr__(name: str) -> Any:
    if name in _ABOVE:
        found = globals()[name] = getattr(importlib.import_module(_ABOVE[name]), name)
        return found
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = ["backward", "detect_anomaly", "enable_grad", "grad", "inference_mode", "no_grad", "set_detect_anomaly",
           "set_grad_enabled"]
