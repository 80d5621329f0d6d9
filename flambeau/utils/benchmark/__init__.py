"""`torch.utils.benchmark`: timings of statements, and tables of them."""

from __future__ import annotations

from time import perf_counter

from .common import ordered_unique, set_torch_threads, trim_sigfig, unit_to_english
from .compare import Compare
from .measurement import Measurement, TaskSpec, select_unit
from .timer import Timer

timer = perf_counter  # PyTorch's name of the clock, in place of the module of that name

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads", "timer",
           "trim_sigfig", "unit_to_english"]
