"""`torch.autograd.profiler_legacy`: the deprecated name of `torch.autograd.profiler`."""

from __future__ import annotations

from .profiler import profile

__all__ = ["profile"]
