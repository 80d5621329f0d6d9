"""`torch.autograd.grad_mode`: the modes under PyTorch's module name."""

from __future__ import annotations

from .modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
