"""`torch.autograd.grad_mode`: the grad modes under PyTorch's module name."""

from __future__ import annotations

from ..engine.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..engine.policies import _force_original_view_tracking, enforce_grad_layout_policy, set_multithreading_enabled
from ..engine.saved.version_counters import _unsafe_preserve_version_counter

__all__ = ["_force_original_view_tracking", "_unsafe_preserve_version_counter", "enable_grad",
           "enforce_grad_layout_policy", "inference_mode", "no_grad", "set_grad_enabled",
           "set_multithreading_enabled"]
