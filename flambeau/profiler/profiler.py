"""`torch.profiler.profiler`: where PyTorch defines the profiler, by this name."""

from __future__ import annotations

from . import *  # noqa: F403
from . import ProfilerAction
from . import __all__ as __all__


def _default_schedule_fn(_: int) -> ProfilerAction:
    """The schedule of a profiler that is given none: each step is recorded."""
    return ProfilerAction.RECORD
