"""`torch._C._profiler`: stacks of frames, and the enumerations of profilers."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Any

from ..autograd.kineto_events import ActiveProfilerType
from ..engine.profiler_events import USER, record_span
from ..profiler import ProfilerActivity


class CapturedTraceback:
    """A stack, of which only code and line numbers are kept until it is read.

    Attributes:
        skip: the number of innermost frames that are left out.

    >>> from flambeau.utils._traceback import CapturedTraceback
    >>> CapturedTraceback.extract().summary()[-1].name
    '<module>'
    """

    __slots__ = ("skip", "tb")

    def __init__(self, tb: Any, skip: int = 0) -> None:
        self.tb, self.skip = tb, skip

    @classmethod
    def extract(cls, *, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The stack of the caller.

        Args:
            script, cpp: whether frames of TorchScript and C++ are wanted; there are none.
            skip: the number of innermost frames to leave out.
        """
        frames = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return cls(frames, skip)

    def cleanup(self) -> None:
        """Drop the stack."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The stack as `traceback` has it, outermost first; empty after `cleanup`."""
        if self.tb is None:
            return traceback.StackSummary()
        return traceback.StackSummary.from_list([
            traceback.FrameSummary(code.co_filename, line, code.co_name)
            for code, line in reversed(self.tb[self.skip:])])

    def format(self) -> list[str]:
        """The lines of a printed traceback."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: list[CapturedTraceback | None]) -> list[list[str] | None]:
        """`format` of each."""
        return [None if each is None else each.format() for each in tbs]

    def __getstate__(self) -> Any:
        return None, {"tb": None, "skip": self.skip}  # code is not pickled


class _ExperimentalConfig:
    """Settings of Kineto, which are kept: profiles record the same whatever they are."""

    def __init__(self, profiler_metrics: Any = (), profiler_measure_per_kernel: bool = False, verbose: bool = False,
                 performance_events: Any = (), enable_cuda_sync_events: bool = False,
                 adjust_profiler_step: bool = False, disable_external_correlation: bool = False,
                 profile_all_threads: bool = False, capture_overload_names: bool = False,
                 record_python_gc_info: bool = False, expose_kineto_event_metadata: bool = False,
                 custom_profiler_config: str = "", adjust_timestamps: bool = False, trace_only: bool = False) -> None:
        self.profiler_metrics, self.performance_events = list(profiler_metrics), list(performance_events)
        self.profiler_measure_per_kernel, self.verbose = profiler_measure_per_kernel, verbose
        self.enable_cuda_sync_events, self.adjust_profiler_step = enable_cuda_sync_events, adjust_profiler_step
        self.disable_external_correlation = disable_external_correlation
        self.profile_all_threads, self.capture_overload_names = profile_all_threads, capture_overload_names
        self.record_python_gc_info = record_python_gc_info
        self.expose_kineto_event_metadata = expose_kineto_event_metadata
        self.custom_profiler_config, self.adjust_timestamps = custom_profiler_config, adjust_timestamps
        self.trace_only = trace_only


class _RecordFunctionFast:
    """A block of a profile, which can be entered again.

    Args:
        name: of the event.
        input_values: values whose shapes are recorded.
        keyword_values: others, which are not recorded.

    >>> import flambeau as torch
    >>> with torch.profiler.profile(record_shapes=True) as prof:
    ...     with torch._C._profiler._RecordFunctionFast("block", [torch.ones(2, 3)]):
    ...         pass
    >>> [(event.name, event.input_shapes) for event in prof.events() if event.name == "block"]
    [('block', [[2, 3]])]
    """

    def __init__(self, name: str, input_values: Sequence[Any] | None = None,
                 keyword_values: dict[str, Any] | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError("The name passed to RecordFunctionFast must be a string")
        if not isinstance(input_values, (list, tuple, type(None))):
            raise TypeError("input_values must be a list or tuple")
        if not isinstance(keyword_values, (dict, type(None))):
            raise TypeError("keyword_values must be dict")
        self.name, self.input_values, self.keyword_values = name, input_values or (), keyword_values or {}
        self._spans: list[record_span] = []

    def __enter__(self) -> None:
        self._spans.append(record_span(self.name, USER, self.input_values))
        self._spans[-1].__enter__()

    def __exit__(self, *exception: object) -> None:
        self._spans.pop().__exit__(*exception)


def gather_traceback(python: bool, script: bool, cpp: bool) -> CapturedTraceback:
    """The stack of the caller; frames of TorchScript and C++ there are none."""
    captured = CapturedTraceback.extract(skip=1)
    if not python:
        captured.cleanup()
    return captured


def symbolize_tracebacks(tracebacks: list[CapturedTraceback]) -> list[list[dict[str, Any]]]:
    """The frames of each stack, innermost first: name, file and line."""
    return [[{"name": frame.name, "filename": frame.filename, "line": frame.lineno}
             for frame in reversed(each.summary())] for each in tracebacks]


__all__ = ["ActiveProfilerType", "CapturedTraceback", "ProfilerActivity", "_ExperimentalConfig", "_RecordFunctionFast",
           "gather_traceback", "symbolize_tracebacks"]
