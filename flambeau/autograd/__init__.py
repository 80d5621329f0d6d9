"""`torch.autograd`: `backward`, `grad`, grad modes, custom Functions, hooks, gradcheck and the profiler.

The engine itself is `flambeau.engine`. Names and modules that depend on tensors are imported on first access.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..engine.anomaly_mode import detect_anomaly, set_detect_anomaly
from ..engine.api import backward, grad
from ..engine.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

_LAZY = {"_unsafe_preserve_version_counter": "flambeau.engine.saved.version_counters",
          "enforce_grad_layout_policy": "flambeau.engine.policies",
          "is_multithreading_enabled": "flambeau.engine.policies",
          "is_view_replay_enabled": "flambeau.engine.policies",
          "_force_original_view_tracking": "flambeau.engine.policies",
          "set_multithreading_enabled": "flambeau.engine.policies",
          "NestedIOFunction": "flambeau.autograd.function",
          "Function": "flambeau._tensor.custom_functions.function",
          "SavedTensor": "flambeau.engine.saved.saved_tensors",
          "Variable": "flambeau.autograd.variable", "_is_checkpoint_valid": "flambeau.autograd.variable",
          "DeviceType": "flambeau.autograd.profiler_util",
          "_disable_profiler": "flambeau.autograd.profiler",
          "_profiler_enabled": "flambeau.autograd.profiler", "kineto_available": "flambeau.autograd.profiler",
          "gradcheck": "flambeau.autograd.gradcheck", "gradgradcheck": "flambeau.autograd.gradcheck"}
_MODULES = ("anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph", "profiler",
            "profiler_legacy", "profiler_util", "variable")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
        return value
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class _Autograd(type(sys)):  # type: ignore[misc]
    """The class of this package: importing the submodule `gradcheck` must not rebind the name from the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "gradcheck" and isinstance(value, type(sys)):
            value = value.gradcheck
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Autograd

__all__ = ["backward", "detect_anomaly", "enable_grad", "grad", "inference_mode", "no_grad", "set_detect_anomaly",
           "set_grad_enabled"]
