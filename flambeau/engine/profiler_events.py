"""Profiler events: the spans of time that a profiler records, nested, for one thread.

Operators, nodes and compiled programs open a span if their thread has an active timeline. Memory is counted per
array that owns memory: when a span's result is allocated, and when it is freed.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..modes import active_profilers, special

FUNCTION, BACKWARD, USER = 0, 1, 7  # scopes of spans, with PyTorch's numbers


class Span:
    """One interval of time: its name and thread, the shapes of its inputs, and its memory."""

    __slots__ = ("asynchronous", "bytes", "device_time", "end", "forward_thread", "name", "scope", "sequence", "shapes",
                 "stack", "start", "thread", "work")

    def __init__(self, name: str, scope: int, thread: int) -> None:
        self.name = name
        self.scope = scope
        self.thread = thread
        self.start = self.end = 0  # nanoseconds; the end is 0 while the span is open
        self.device_time = 0  # nanoseconds of the kernels that it launched on a device, without those of its children
        self.asynchronous = False  # whether it began where it was called, and ended elsewhere
        self.bytes = 0  # allocated minus freed, in this span and its children
        self.shapes: list[list[int]] | None = None
        self.stack: list[str] | None = None
        self.sequence = -1  # sequence number of the node that the operator recorded, or that the span evaluates
        self.forward_thread = 0
        self.work: tuple[int, int, bool] | None = None  # of a kernel: bytes, flops, whether float64


#: functions whose results are in the metadata of trace files, such as which process of a group wrote it
trace_metadata: list[Callable[[], dict[str, Any]]] = []

_running: dict[int, list[Timeline]] = {}  # thread -> its timelines; the last one is active


class Timeline:
    """A recording of spans.

    Args:
        shapes: record the shapes of operators' inputs.
        memory: count the bytes of their results.
        stacks: record call stacks.
    """

    def __init__(self, *, shapes: bool = False, memory: bool = False, stacks: bool = False) -> None:
        self.shapes = shapes
        self.memory = memory
        self.stacks = stacks
        self.spans: list[Span] = []
        self.open_spans: list[Span] = []
        self.live_arrays: dict[int, weakref.ref[np.ndarray]] = {}
        self.thread = self.native_thread = 0  # the recorded thread, and its number in the operating system
        self.other_threads: dict[int, int] = {}  # threads that collectives ran in -> their numbers there
        self.start = self.end = 0

    def begin(self) -> None:
        """Become this thread's active timeline."""
        special[0] += 1  # every operator takes the general path, which opens a span
        active_profilers[0] += 1
        self.thread, self.native_thread = threading.get_ident(), threading.get_native_id()
        _running.setdefault(self.thread, []).append(self)
        self.start = perf_counter_ns()

    def finish(self) -> None:
        """Stop recording."""
        self.end = perf_counter_ns()
        self.pause()
        self.live_arrays.clear()

    def pause(self) -> None:
        """Record nothing for a while."""
        running = _running.get(self.thread, [])
        if self in running:
            running.remove(self)
            special[0] -= 1
            active_profilers[0] -= 1

    def resume(self) -> None:
        """Record again after a pause."""
        running = _running.setdefault(self.thread, [])
        if self not in running:
            running.append(self)
            special[0] += 1
            active_profilers[0] += 1

    def enter(self, name: str, scope: int = FUNCTION, *, inputs: Sequence[Any] = (), n_parameters: int = 0) -> Span:
        """Open a span.

        Args:
            inputs: tensors and other values; the recorded shape of other values is [].
            n_parameters: the number of keyword parameters, whose shapes are recorded as [].
        """
        span = Span(name, scope, self.thread)
        if self.shapes:
            span.shapes = [*map(_recorded_shape, inputs), *[[]] * n_parameters]
        if self.stacks:
            span.stack = call_stack()
        self.spans.append(span)
        self.open_spans.append(span)
        span.start = perf_counter_ns()
        return span

    def leave(self, span: Span) -> None:
        """Close a span and its open children."""
        now = perf_counter_ns()
        stack = self.open_spans
        if span not in stack:
            return
        while True:
            last = stack.pop()
            last.end = now
            if stack:
                stack[-1].bytes += last.bytes
            if last is span:
                return

    def record_kernel(self, name: str, start: int, end: int, work: tuple[int, int, bool]) -> None:
        """Record a kernel that ran in the open span.

        Args:
            start, end: nanoseconds.
            work: the bytes that it moves, its flops, and whether they are float64.
        """
        span = Span(name, FUNCTION, self.thread)
        span.start, span.end, span.work = start, end, work
        if self.shapes:
            span.shapes = []
        if self.stacks:
            span.stack = self.open_spans[-1].stack if self.open_spans else call_stack()
        self.spans.append(span)

    def record_elsewhere(self, name: str, start: int, shapes: list[list[int]] | None = None) -> None:
        """Record what this thread has done for the recorded one, until now.

        Args:
            name: what it was.
            start: when it began, in nanoseconds.
            shapes: the shapes of its inputs.
        """
        thread = threading.get_ident()
        span = Span(name, USER, thread)
        span.asynchronous, span.shapes = True, shapes
        span.start, span.end = start, perf_counter_ns()
        self.other_threads[thread] = threading.get_native_id()
        self.spans.append(span)

    # ----- memory -----

    def record_allocations(self, span: Span, arrays: Sequence[Any], inputs: Sequence[Any] = ()) -> None:
        """Count the memory of results, except of arrays that are counted already or are inputs."""
        existing = {id(owning_array(a)) for a in inputs}
        for a in arrays:
            a = owning_array(a)
            if a is None or id(a) in existing or id(a) in self.live_arrays:
                continue
            key, size = id(a), a.nbytes
            span.bytes += size
            self.live_arrays[key] = weakref.ref(a, partial(self._freed, key, size))

    def _freed(self, key: int, size: int, reference: weakref.ref[np.ndarray]) -> None:
        if self.live_arrays.pop(key, None) is None:
            return
        if self.open_spans:
            self.open_spans[-1].bytes -= size
            return
        span = Span("[memory]", FUNCTION, self.thread)
        span.start = span.end = perf_counter_ns()
        span.bytes = -size
        self.spans.append(span)


def active_timeline() -> Timeline | None:
    """This thread's active timeline, if any."""
    running = _running.get(threading.get_ident())
    return running[-1] if running else None


def _recorded_shape(x: Any) -> list[int]:
    """The shape of an input; [] of other values, and of nested tensors, which have none."""
    if not hasattr(x, "_array"):
        return []
    try:
        return list(x.shape)
    except RuntimeError:
        return []


class record_span:
    """A block that opens a span in this thread's active timeline; `as` gives the span, or None without a timeline."""

    def __init__(self, name: str, scope: int = FUNCTION, inputs: Sequence[Any] = ()) -> None:
        self.name, self.scope, self.inputs = name, scope, inputs

    def __enter__(self) -> Span | None:
        timeline = self.timeline = active_timeline()
        self.span = None if timeline is None else timeline.enter(self.name, self.scope, inputs=self.inputs)
        return self.span

    def __exit__(self, *exception: object) -> None:
        if self.timeline is not None and self.span is not None:
            self.timeline.leave(self.span)


def owning_array(a: Any) -> np.ndarray | None:
    """The array that owns the memory of `a`; None if `a` is no array."""
    if not isinstance(a, np.ndarray):
        return None
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def call_stack() -> list[str]:
    """The call stack, innermost first, without this library's frames: `file(line): function`."""
    here = __file__.replace("\\", "/").rsplit("/", 2)[0]
    lines = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.replace("\\", "/").startswith(here):
            lines.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return lines
