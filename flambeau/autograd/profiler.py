"""`torch.autograd.profiler`: time and memory of a block of code, by operator, forward and backward."""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .._tensor.dispatch import profiling as _profiling  # noqa: F401  (imported now, not during the first operator)
from ..devices import current_cuda
from ..engine.profiler_events import USER, Timeline, active_timeline, record_span, trace_metadata
from ..modes import active_profilers
from .composite_spans import CompositeSpans
from .kineto_events import _ProfilerResult
from .profiler_util import DeviceType, EventList, FunctionEvent, FunctionEventAvg, MemRecordsAcc, write_trace

_STEP = "ProfilerStep#"

F = TypeVar("F", bound=Callable[..., Any])


class profile:
    """A block whose operators are timed, and the recorded events.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.profiler.profile.html

    Args:
        enabled: False turns the block into a no-op.
        use_device: another device to profile; none is available, which is a warning.
        record_shapes: record the shapes of operators' inputs.
        profile_memory: count the bytes that are allocated and freed.
        with_stack: record call stacks.

    The other arguments are accepted for compatibility and ignored.

    >>> import flambeau as torch
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> with torch.autograd.profiler.profile(record_shapes=True) as prof:
    ...     (x * 2).sum().backward()
    >>> [event.name for event in prof.function_events if event.name.startswith("aten")][:2]
    ['aten::mul', 'aten::sum']
    >>> print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=5))  # doctest: +SKIP

    A compiled function's kernels are separate events and run one at a time under a profiler. Their rows give memory
    traffic, flops and the fraction of the machine's peak (`EventList.table`).
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
                 record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True,
                 experimental_config: Any = None, acc_events: bool = False, custom_trace_id_callback: Any = None,
                 post_processing_timeout_s: float | None = None, activity_filters: Any = None) -> None:
        self.enabled = enabled
        self.use_device: str | None = None
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.entered = False
        self._function_events: EventList | None = None
        self._custom_trace_id_callback = custom_trace_id_callback
        self.trace_id = ""
        self._timeline: Timeline | None = None
        self._composite_spans = CompositeSpans()
        if not enabled:
            return
        if use_cuda:
            warnings.warn("The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` "
                          "instead.", FutureWarning, stacklevel=2)
            use_device = "cuda"
        if use_device == "cuda" and current_cuda() is not None:
            self.use_device = use_device
        elif use_device == "cuda":
            warnings.warn("CUDA is not available, disabling CUDA profiling", UserWarning, stacklevel=2)
        elif use_device is not None:
            warnings.warn(f"The {use_device} is not available, disabling profiling on it", UserWarning, stacklevel=2)
        if not use_cpu:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        timeline = Timeline(shapes=self.record_shapes, memory=self.profile_memory, stacks=self.with_stack)
        timeline.begin()
        self.entered = True
        self.trace_id = self.create_trace_id()
        self._timeline = timeline
        self._composite_spans.install()
        return self

    def __exit__(self, *exception: object) -> None:
        if not self.enabled or self._timeline is None:
            return
        self._timeline.finish()
        self._composite_spans.remove()
        self._function_events = _events(self._timeline, self.profile_memory, self.with_flops)

    @property
    def function_events(self) -> EventList | None:
        """The recorded events; None before the end of the block."""
        return self._function_events

    @property
    def kineto_results(self) -> _ProfilerResult | None:
        """The recorded events as `torch._C._autograd` has them; None before the end of the block."""
        if self._timeline is None or self._function_events is None:
            return None
        return _ProfilerResult(self._timeline, [self._timeline.thread, *self._timeline.other_threads])

    def default_trace_id(self) -> str:
        """A new random name of a trace."""
        import uuid

        return f"{uuid.uuid4().int:032X}"

    def create_trace_id(self) -> str:
        """A new name of a trace: what `custom_trace_id_callback` returns, or a random one."""
        make = self._custom_trace_id_callback
        return self.default_trace_id() if make is None else make()

    def config(self, create_trace_id: bool = False) -> dict[str, Any]:
        """What is recorded, by name."""
        if create_trace_id:
            self.trace_id = self.create_trace_id()
        return {"record_shapes": self.record_shapes, "profile_memory": self.profile_memory,
                "with_stack": self.with_stack, "with_flops": self.with_flops, "trace_id": self.trace_id}

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[Any]) -> None:
        """Stop recording operators, or start it again, inside the block.

        Args:
            enabled: False to stop.
            activities: what is meant; only that of the CPU has an effect.
        """
        if self._timeline is not None and 0 in set(activities):
            self._timeline.resume() if enabled else self._timeline.pause()

    def _finished(self) -> EventList:
        return EventList(profile_memory=self.profile_memory) if self.function_events is None else self.function_events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
              max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80,
              header: str | None = None, top_level_events_only: bool = False) -> str:
        """The events as a table, one row each (`EventList.table`)."""
        return self._finished().table(sort_by, row_limit, max_src_column_width, max_name_column_width,
                                      max_shapes_column_width, header, top_level_events_only)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Sums of events by name, optionally also by input shapes or the innermost `group_by_stack_n` frames."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self._finished().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the events' self times, in microseconds."""
        return self._finished().self_cpu_time_total

    def export_chrome_trace(self, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
        """Write the events as a JSON trace for `chrome://tracing` and Perfetto."""
        if self._timeline is None or self.function_events is None:
            raise AssertionError("Profiler must have run before its trace can be exported")
        native = [self._timeline.native_thread, *self._timeline.other_threads.values()]
        base: dict[str, Any] = {"baseTimeNanoseconds": time.time_ns() - time.perf_counter_ns()}  # of the clock of `ts`
        for describe in trace_metadata:
            base |= describe()
        write_trace(path, self.function_events, os.getpid(), base | (metadata or {}), lambda i: native[i - 1],
                    self._timeline.start / 1e3)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write call stacks weighted by `metric`, the input of flame graph tools.

        Raises:
            AssertionError: call stacks were not recorded.
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._finished().export_stacks(path, metric)


def _events(timeline: Timeline, memory: bool, flops: bool) -> EventList:
    """A timeline's spans as events, in microseconds since its start."""
    events = EventList(profile_memory=memory, with_flops=flops)
    start = timeline.start
    threads = {thread: number for number, thread in enumerate([timeline.thread, *timeline.other_threads], 1)}
    for number, span in enumerate((span for span in timeline.spans if span.end), 1):
        step = span.scope == USER and span.name.startswith(_STEP)  # one group for all steps
        event = FunctionEvent(
            number, f"{_STEP[:-1]}*" if step else span.name, threads.get(span.thread, 1),
            (span.start - start) / 1e3, (span.end - start) / 1e3,
            overload_name="", fwd_thread=1 if span.forward_thread else 0, input_shapes=span.shapes or [],
            stack=span.stack or [], scope=span.scope, cpu_memory_usage=span.bytes, sequence_nr=span.sequence,
            device_type=DeviceType.CPU, trace_name=span.name, is_user_annotation=span.scope == USER,
            is_async=span.asynchronous,
            flops=None if span.work is None else span.work[1])
        if span.device_time:
            event.self_device_time_total, event.use_device = span.device_time / 1e3, "cuda"
        if span.work is not None:
            event.kernel_costs[span.work] = 1
        events.append(event)
    events._build_tree()
    return events


class record_function:
    """A block, or a decorated function, that is an event of the given name in profiles.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.profiler.record_function.html

    >>> import flambeau as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("both"):
    ...         _ = torch.ones(2).sin().cos()
    >>> [child.name for child in prof.function_events[0].cpu_children]
    ['aten::ones', 'aten::sin', 'aten::cos']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: list[record_span] = []

    def __enter__(self) -> record_function:
        block = record_span(self.name, USER)
        block.__enter__()
        self._open.append(block)
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.pop().__exit__(*exception)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class emit_nvtx:
    """A block that emits NVTX ranges; not supported.

    Raises:
        AssertionError: on entry, if enabled.

    >>> import flambeau as torch
    >>> with torch.autograd.profiler.emit_nvtx(enabled=False):
    ...     pass
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> None:
        if self.enabled:
            raise AssertionError("Torch not compiled with CUDA enabled")

    def __exit__(self, *exception: object) -> None:
        pass


class emit_itt:
    """A block that emits ITT ranges; without an attached tool it has no effect.

    >>> import flambeau as torch
    >>> with torch.autograd.profiler.emit_itt():
    ...     pass
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> emit_itt | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("ITT annotation context manager is not reentrant")
        self.entered = True
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def kineto_available() -> bool:
    """Whether the Kineto library is available: False.

    >>> import flambeau as torch
    >>> torch.profiler.kineto_available()
    False
    """
    return False


def _profiler_enabled() -> bool:
    """Whether a profiler is active in this thread."""
    return active_timeline() is not None


def _disable_profiler() -> _ProfilerResult:
    """Stop this thread's innermost profiler, whoever started it.

    Its events are returned; there are none where no profiler runs.

    >>> import flambeau as torch
    >>> with torch.profiler.profile():
    ...     y = torch.ones(2) + 1
    ...     names = [event.name() for event in torch.autograd._disable_profiler().events()]
    ...     torch.autograd._profiler_enabled()
    False
    >>> "aten::add" in names
    True
    """
    timeline = active_timeline()
    if timeline is None:
        return _ProfilerResult(Timeline(), [])
    timeline.finish()
    return _ProfilerResult(timeline, [timeline.thread, *timeline.other_threads])


class EnforceUnique:
    """Raises an error for a key that it has seen before.

    >>> from flambeau.autograd.profiler import EnforceUnique
    >>> keys = EnforceUnique()
    >>> keys.see("a", 1)
    >>> keys.see("a", 1)
    Traceback (most recent call last):
      ...
    RuntimeError: duplicate key: ('a', 1)
    """

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note a key.

        Raises:
            RuntimeError: it was noted before.
        """
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """The number of steps that a program has taken: the largest of those that profilers and optimizers report.

    >>> from flambeau.autograd.profiler import KinetoStepTracker
    >>> KinetoStepTracker.init_step_count("loop")
    >>> KinetoStepTracker.increment_step("loop") - KinetoStepTracker.current_step()
    0
    >>> KinetoStepTracker.erase_step_count("loop")
    True
    """

    _current_step = 0
    _step_dict: dict[str, int] = {}  # noqa: RUF012

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Start to count the steps of a requester, from the current step on."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a requester; whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of a requester; the current step."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        newest = max(cls._step_dict.values())
        if newest - cls._current_step > 1:
            warnings.warn("Profiler step count has increased more than 1 - current_step = "
                          f"{cls._current_step} step dict =  {cls._step_dict}", stacklevel=2)
        cls._current_step = max(newest, cls._current_step)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The current step."""
        return cls._current_step


def parse_nvprof_trace(path: Any) -> list[FunctionEvent]:
    """The events of a trace file of NVIDIA's nvprof, a database of SQLite, by their start.

    Args:
        path: the file.

    Raises:
        sqlite3.OperationalError: not such a file.

    >>> from flambeau.autograd.profiler import parse_nvprof_trace
    >>> events = parse_nvprof_trace("trace.nvprof")  # doctest: +SKIP
    """
    import sqlite3

    with sqlite3.connect(path) as database:
        names = dict(database.execute("SELECT _id_, value FROM StringTable"))
        unique = EnforceUnique()
        events: dict[int, FunctionEvent] = {}
        for marker, name, start, end in database.execute(
                "SELECT first.id, first.name, first.timestamp, last.timestamp "
                "FROM CUPTI_ACTIVITY_KIND_MARKER AS first "
                "JOIN CUPTI_ACTIVITY_KIND_MARKER AS last ON first.id = last.id "
                "WHERE first.name != 0 AND last.name = 0"):
            unique.see(marker)
            events[marker] = FunctionEvent(marker, names[name], 0, start, end, node_id=0)
        unique = EnforceUnique()
        for marker, launch, kind, kernel, start, end in database.execute(
                "SELECT first.id, call._id_, call.cbid, kernel.name, kernel.start, kernel.end "
                "FROM CUPTI_ACTIVITY_KIND_MARKER AS first "
                "JOIN CUPTI_ACTIVITY_KIND_MARKER AS last ON first.id = last.id "
                "JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS call "
                "ON first.timestamp < call.start AND call.end < last.timestamp "
                "JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel ON kernel.correlationId = call.correlationId"):
            unique.see(marker, launch)
            if kind != 211:  # a launch of a kernel
                raise AssertionError(f"Expected cbid to be 211, but got {kind}")
            events[marker].append_kernel(kernel, 0, end - start)
    return sorted(events.values(), key=lambda event: event.time_range.start)


def load_nvprof(path: Any) -> EventList:
    """The events of a trace file of NVIDIA's nvprof, as a list that prints as a table.

    >>> from flambeau.autograd.profiler import load_nvprof
    >>> print(load_nvprof("trace.nvprof"))  # doctest: +SKIP
    """
    return EventList(parse_nvprof_trace(path))


def __getattr__(name: str) -> bool:
    """Whether a profile is being recorded, `_is_profiler_enabled`, which programs ask before they open a block."""
    if name == "_is_profiler_enabled":
        return active_profilers[0] > 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["EnforceUnique", "EventList", "FunctionEvent", "KinetoStepTracker", "MemRecordsAcc", "emit_itt", "emit_nvtx",
           "load_nvprof", "parse_nvprof_trace", "profile", "record_function"]
