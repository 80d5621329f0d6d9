"""Collectives in profiles: operators where they are called, and user annotations in the threads that carry them out."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, TypeVar

from ..engine.profiler_events import USER, Timeline, active_timeline, record_span, trace_metadata
from ..modes import active_profilers
from .collective_counts import listeners, note
from .world import world

F = TypeVar("F", bound=Callable[..., Any])
_R = TypeVar("_R")


class _Called(threading.local):
    """The collective that this thread calls: its name, and the timeline that records the thread."""

    name: str | None = None
    shapes: list[list[int]] | None = None
    timeline: Timeline | None = None


_called = _Called()


def _shapes(tensors: Any) -> list[list[int]]:
    """The shapes of tensors in lists; complex numbers are pairs."""
    if isinstance(tensors, (list, tuple)):
        return [shape for each in tensors for shape in _shapes(each)]
    if not hasattr(tensors, "_array"):
        return []
    return [[*tensors.shape, 2] if tensors.is_complex() else list(tensors.shape)]


def recorded(operator: str, collective: str, inputs: int = 0) -> Callable[[F], F]:
    """Make a method of a process group an operator `c10d::...` in profiles, and what it starts `gloo:...`.

    Args:
        operator, collective: the names, which are PyTorch's.
        inputs: which argument has the tensors whose shapes are recorded.
    """
    def decorate(method: F) -> F:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if listeners:
                note(operator)
            timeline = active_timeline() if active_profilers[0] else None
            if timeline is None:
                return method(self, *args, **kwargs)
            before = _called.name, _called.timeline, _called.shapes
            _called.name, _called.timeline = f"{self.name()}:{collective}", timeline
            _called.shapes = _shapes(args[inputs]) if timeline.shapes and len(args) > inputs else None
            try:
                with record_span(f"c10d::{operator}"):
                    if collective != "send":
                        return method(self, *args, **kwargs)
                    return in_profile(lambda: method(self, *args, **kwargs))()  # by the caller's thread
            finally:
                _called.name, _called.timeline, _called.shapes = before

        return call  # type: ignore[return-value]

    return decorate


def in_profile(task: Callable[[], _R]) -> Callable[[], _R]:
    """A collective that is recorded where it runs, if the thread that calls it is recorded."""
    name, timeline, shapes = _called.name, _called.timeline, _called.shapes
    if timeline is None or name is None or not active_profilers[0]:
        return task

    def run() -> _R:
        if threading.get_ident() == timeline.thread:
            with record_span(name, USER) as span:
                if span is not None:
                    span.asynchronous, span.shapes = True, shapes
                return task()
        start = perf_counter_ns()
        try:
            return task()
        finally:
            timeline.record_elsewhere(name, start, shapes)

    return run


def _of_this_process() -> dict[str, Any]:
    """What PyTorch writes of process groups into the metadata of traces."""
    group = world.default
    if group is None:
        return {}
    groups = [{"pg_name": world.names.get(each, ""), "pg_desc": "default_pg" if each is group else "undefined",
               "backend_config": world.configs.get(each, ""), "pg_size": each.size(),
               "ranks": list(world.ranks[each])} for each in world.ranks]
    return {"distributedInfo": {"backend": world.backends.get(group, ""), "rank": group.rank(),
                                "world_size": group.size(), "pg_count": len(groups), "pg_config": groups}}


trace_metadata.append(_of_this_process)

__all__ = ["in_profile", "recorded"]
