"""Which of PyTorch's attention kernels are enabled. One implementation computes all; disabling can make calls fail."""

from __future__ import annotations

import warnings
from typing import Any

#: name -> whether the kernel is enabled
enabled = {"cudnn": True, "flash": True, "mem_efficient": True, "math": True, "overrideable": True}
#: kernels by number, in the order of their priority
priority = [1, 2, 0, 3, 4]
#: [whether calls must be checked]
restricted = [False]


def set_enabled(name: str, value: bool) -> None:
    """Enable or disable a kernel."""
    enabled[name] = bool(value)
    restricted[0] = not enabled["math"]


def check(query: Any, key: Any, value: Any, dropout_p: float) -> None:
    """Raise where PyTorch has no kernel on the CPU: without "math", unless "flash" takes the arguments."""
    if enabled["math"]:
        return
    if not enabled["flash"]:
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found. This is likely due to "
                           "turning off both the math kernel and the fused kernels.")
    reason = ""
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        reason = ("All fused kernels requires query, key and value to be 4 dimensional, but got Query dim: "
                  f"{query.ndim}, Key dim: {key.ndim}, Value dim: {value.ndim} instead. (Triggered internally at "
                  "/__w/pytorch/pytorch/aten/src/ATen/native/transformers/sdp_utils_cpp.h:327.)")
    elif dropout_p > 0:
        reason = ("Both fused kernels do not support non-zero dropout. (Triggered internally at "
                  "/__w/pytorch/pytorch/aten/src/ATen/native/transformers/sdp_utils_cpp.h:241.)")
    if reason:
        warnings.warn("Flash attention kernel not used because: (Triggered internally at "
                      "/__w/pytorch/pytorch/aten/src/ATen/native/transformers/sdp_utils_cpp.cpp:99.)", stacklevel=3)
        warnings.warn(reason, stacklevel=3)
        raise RuntimeError("No available kernel.  Aborting execution.")


__all__ = ["check", "enabled", "priority", "restricted", "set_enabled"]
