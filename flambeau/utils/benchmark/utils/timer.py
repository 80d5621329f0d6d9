"""Where PyTorch defines `Timer`, by this name."""

from __future__ import annotations

from time import perf_counter as timer

from ..timer import Language, Timer

__all__ = ["Language", "Timer", "timer"]
