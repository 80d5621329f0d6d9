"""What a profiler writes down: named spans of time, nested as they ran, of one thread.

Whoever runs something worth knowing of opens a span, if there is a timeline, and closes it. Only
the thread that began the timeline writes to it. Memory is counted by the arrays that a span's
results lie in, when they are made and when they are freed.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..modes import profiled, special

FUNCTION, BACKWARD, USER = 0, 1, 7  # what a span is of, by PyTorch's numbers


class Span:
    """One stretch of time: its name, where it ran, what it was given and what it took."""

    __slots__ = ("bytes", "end", "forward_thread", "name", "scope", "sequence", "shapes", "stack", "start", "thread",
                 "work")

    def __init__(self, name: str, scope: int, thread: int) -> None:
        self.name = name
        self.scope = scope
        self.thread = thread
        self.start = self.end = 0  # nanoseconds; an end of 0 is yet to come
        self.bytes = 0  # made less freed, in this span and in those within it
        self.shapes: list[list[int]] | None = None
        self.stack: list[str] | None = None
        self.sequence = -1  # of the node that an operator recorded, and of that node's own spans
        self.forward_thread = 0
        self.work: tuple[int, int, bool] | None = None  # of a kernel: bytes, arithmetic, whether on float64


_running: dict[int, list[Timeline]] = {}  # thread -> its timelines, that which is written to last


class Timeline:
    """A list of spans that is being written.

    Args:
        shapes: note the shapes of what operators are given.
        memory: count the bytes of their results.
        stacks: note the callers.
    """

    def __init__(self, *, shapes: bool = False, memory: bool = False, stacks: bool = False) -> None:
        self.shapes = shapes
        self.memory = memory
        self.stacks = stacks
        self.spans: list[Span] = []
        self.open: list[Span] = []
        self.arrays: dict[int, weakref.ref[np.ndarray]] = {}
        self.thread = self.native_thread = 0  # whose spans are noted: that which began; and the system's number of it
        self.start = self.end = 0

    def begin(self) -> None:
        """Be the one that this thread writes to, instead of one that it may be writing to."""
        special[0] += 1  # so that every operator takes the general way, which opens a span
        profiled[0] += 1
        self.thread, self.native_thread = threading.get_ident(), threading.get_native_id()
        _running.setdefault(self.thread, []).append(self)
        self.start = perf_counter_ns()

    def finish(self) -> None:
        """Be written to no longer."""
        self.end = perf_counter_ns()
        running = _running.get(self.thread, [])
        if self in running:
            running.remove(self)
            special[0] -= 1
            profiled[0] -= 1
        self.arrays.clear()

    def enter(self, name: str, scope: int = FUNCTION, *, given: Sequence[Any] = (), parameters: int = 0) -> Span:
        """Open a span.

        Args:
            given: tensors and others; where shapes are noted, others' shape is [].
            parameters: how many more others there are.
        """
        span = Span(name, scope, self.thread)
        if self.shapes:
            span.shapes = [list(x.shape) if hasattr(x, "_array") else [] for x in given] + [[]] * parameters
        if self.stacks:
            span.stack = callers()
        self.spans.append(span)
        self.open.append(span)
        span.start = perf_counter_ns()
        return span

    def leave(self, span: Span) -> None:
        """Close a span, and whatever is still open within it."""
        now = perf_counter_ns()
        stack = self.open
        if span not in stack:
            return
        while True:
            last = stack.pop()
            last.end = now
            if stack:
                stack[-1].bytes += last.bytes
            if last is span:
                return

    def ran(self, name: str, start: int, end: int, work: tuple[int, int, bool]) -> None:
        """Write down a kernel that has run, within the span that is open.

        Args:
            start, end: when, in nanoseconds.
            work: the bytes that it had to move, its arithmetic, and whether that was on float64.
        """
        span = Span(name, FUNCTION, self.thread)
        span.start, span.end, span.work = start, end, work
        if self.shapes:
            span.shapes = []
        if self.stacks:
            span.stack = self.open[-1].stack if self.open else callers()
        self.spans.append(span)

    # ----- memory -----

    def made(self, span: Span, arrays: Sequence[Any], given: Sequence[Any] = ()) -> None:
        """Count the memory of results, but for what was there before: known already, or `given`."""
        there = {id(owner(a)) for a in given}
        for a in arrays:
            a = owner(a)
            if a is None or id(a) in there or id(a) in self.arrays:
                continue
            key, size = id(a), a.nbytes
            span.bytes += size
            self.arrays[key] = weakref.ref(a, partial(self._freed, key, size))

    def _freed(self, key: int, size: int, reference: weakref.ref[np.ndarray]) -> None:
        if self.arrays.pop(key, None) is None:
            return
        if self.open:
            self.open[-1].bytes -= size
            return
        loose = Span("[memory]", FUNCTION, self.thread)
        loose.start = loose.end = perf_counter_ns()
        loose.bytes = -size
        self.spans.append(loose)


def recording() -> Timeline | None:
    """The timeline that this thread writes to, if any."""
    running = _running.get(threading.get_ident())
    return running[-1] if running else None


class spanned:
    """A block that is a span of this thread's timeline, if there is one; `as` gives the span, or None."""

    def __init__(self, name: str, scope: int = FUNCTION) -> None:
        self.name, self.scope = name, scope

    def __enter__(self) -> Span | None:
        timeline = self.timeline = recording()
        self.span = None if timeline is None else timeline.enter(self.name, self.scope)
        return self.span

    def __exit__(self, *exception: object) -> None:
        if self.timeline is not None and self.span is not None:
            self.timeline.leave(self.span)


def owner(a: Any) -> np.ndarray | None:
    """The array whose memory `a` lies in; None where it is no array."""
    if not isinstance(a, np.ndarray):
        return None
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def callers() -> list[str]:
    """Who is running, innermost first, without this library's own frames: `file(line): function`."""
    here = __file__.replace("\\", "/").rsplit("/", 2)[0]
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.replace("\\", "/").startswith(here):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return found
