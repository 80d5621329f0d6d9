"""`torch.utils`: activation checkpointing, data loading, hooks, pytrees and serialization options."""

from __future__ import annotations

import importlib
import os
from typing import Any

_MODULES = (
    "_contextlib", "_import_utils", "_mode_utils", "_python_dispatch", "_pytree", "_triton", "backcompat",
    "backend_registration", "benchmark", "checkpoint", "collect_env", "cpp_extension", "data", "dlpack", "file_baton",
    "flop_counter", "hooks", "model_zoo", "module_tracker", "serialization", "show_pickle", "tensorboard",
    "throughput_benchmark", "weak",
)
_DEFINED_IN = {"set_module": "swapping", "swap_tensors": "swapping", "ThroughputBenchmark": "throughput_benchmark",
               "rename_privateuse1_backend": "backend_registration",
               "generate_methods_for_privateuse1_backend": "backend_registration"}
cmake_prefix_path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "share", "cmake")


def get_cpp_backtrace(frames_to_skip: int = 0, maximum_number_of_frames: int = 64) -> str:
    """The call stack of C++ code, which is empty.

    >>> import flambeau as torch
    >>> torch.utils.get_cpp_backtrace()
    ''
    """
    return ""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _DEFINED_IN:
        return getattr(importlib.import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
    if name == "deterministic":
        return importlib.import_module(f"{__name__}.deterministic")
    if name == "_sympy":
        return importlib.import_module(f"{__package__.partition('.')[0]}.environment.absent_modules").MODULES[
            "utils._sympy"]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = ["checkpoint", "data", "hooks", "serialization"]
