"""`torch.utils.benchmark`: timings of statements, and tables of them."""

from __future__ import annotations

from time import perf_counter

from . import utils
from .callgrind import CallgrindStats, CopyIfCallgrind, FunctionCount, FunctionCounts
from .common import ordered_unique, set_torch_threads, trim_sigfig, unit_to_english
from .compare import Colorize, Compare
from .fuzzer import FuzzedParameter, FuzzedSparseTensor, FuzzedTensor, Fuzzer, ParameterAlias
from .measurement import Measurement, TaskSpec, select_unit
from .timer import Language, Timer

timer = perf_counter  # PyTorch's name of the clock, in place of the module of that name

__all__ = ["CallgrindStats", "Colorize", "Compare", "CopyIfCallgrind", "FunctionCount", "FunctionCounts",
           "FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "Language", "Measurement",
           "ParameterAlias", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads", "timer",
           "trim_sigfig", "unit_to_english", "utils"]
