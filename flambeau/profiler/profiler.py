"""`torch.profiler.profiler`: where PyTorch defines the profiler, by this name."""

from __future__ import annotations

from . import *  # noqa: F403
from . import __all__ as __all__
