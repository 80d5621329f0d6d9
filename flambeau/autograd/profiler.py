"""`torch.autograd.profiler`: where the time of a block of code goes, operator by operator, forward and backward."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .._tensor.dispatch import profiling as _timed  # noqa: F401  (so that the first operator's time is its own)
from ..engine.profiler_events import USER, Timeline, recording, spanned
from .composite_spans import Handwritten
from .profiler_util import DeviceType, EventList, FunctionEvent, FunctionEventAvg, write_trace

_STEP = "ProfilerStep#"

F = TypeVar("F", bound=Callable[..., Any])


class profile:
    """A block whose operators are timed; then the result: a list of events, and their sums.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.profiler.profile.html

    Args:
        enabled: whether to do anything at all.
        use_device: a device to measure as well; there is none, which is said in a warning.
        record_shapes: note the shapes of what operators are given.
        profile_memory: count the bytes of results, made and freed.
        with_stack: note the callers.

    The others are PyTorch's, and have nothing to act on here.

    >>> import flambeau as torch
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> with torch.autograd.profiler.profile(record_shapes=True) as prof:
    ...     (x * 2).sum().backward()
    >>> [event.name for event in prof.function_events if event.name.startswith("aten")][:2]
    ['aten::mul', 'aten::sum']
    >>> print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=5))  # doctest: +SKIP

    A compiled function's kernels are events of their own, run one at a time while this is on. Their lines say what
    they move and compute, and how near that comes to what the machine can do (`EventList.table`).
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
        self.function_events: EventList | None = None
        self._timeline: Timeline | None = None
        self._handwritten = Handwritten()
        if not enabled:
            return
        if use_cuda:
            warnings.warn("The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` "
                          "instead.", FutureWarning, stacklevel=2)
            use_device = "cuda"
        if use_device == "cuda":
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
        self._timeline = timeline
        self._handwritten.take_over()
        return self

    def __exit__(self, *exception: object) -> None:
        if not self.enabled or self._timeline is None:
            return
        self._timeline.finish()
        self._handwritten.give_back()
        self.function_events = _events(self._timeline, self.profile_memory, self.with_flops)

    def _finished(self) -> EventList:
        return EventList(profile_memory=self.profile_memory) if self.function_events is None else self.function_events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
              max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80,
              header: str | None = None, top_level_events_only: bool = False) -> str:
        """The events, one by one, as a table (`EventList.table`)."""
        return self._finished().table(sort_by, row_limit, max_src_column_width, max_name_column_width,
                                      max_shapes_column_width, header, top_level_events_only)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """The events added up by name, and by shapes or by the innermost callers as well."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        return self._finished().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds that events took in all, none counted twice."""
        return self._finished().self_cpu_time_total

    def export_chrome_trace(self, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
        """Write the events as JSON that `chrome://tracing` and Perfetto show."""
        if self._timeline is None or self.function_events is None:
            raise AssertionError("Profiler must have run before its trace can be exported")
        native = self._timeline.native_thread
        write_trace(path, self.function_events, os.getpid(), metadata, lambda _: native, self._timeline.start / 1e3)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the callers of events, weighed by `metric`: what flame graphs are drawn of.

        Raises:
            AssertionError: the callers were not noted.
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._finished().export_stacks(path, metric)


def _events(timeline: Timeline, memory: bool, flops: bool) -> EventList:
    """A timeline's spans as events, in microseconds from its beginning."""
    found = EventList(profile_memory=memory, with_flops=flops)
    start = timeline.start
    for number, span in enumerate((span for span in timeline.spans if span.end), 1):
        step = span.scope == USER and span.name.startswith(_STEP)  # one group for all steps
        event = FunctionEvent(
            number, f"{_STEP[:-1]}*" if step else span.name, 1, (span.start - start) / 1e3, (span.end - start) / 1e3,
            overload_name="", fwd_thread=1 if span.forward_thread else 0, input_shapes=span.shapes or [],
            stack=span.stack or [], scope=span.scope, cpu_memory_usage=span.bytes, sequence_nr=span.sequence,
            device_type=DeviceType.CPU, trace_name=span.name, is_user_annotation=span.scope == USER,
            flops=None if span.work is None else span.work[1])
        if span.work is not None:
            event.works[span.work] = 1
        found.append(event)
    found._build_tree()
    return found


class record_function:
    """A block that stands in profiles under a name of the user's; also a decorator.

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
        self._open: list[spanned] = []

    def __enter__(self) -> record_function:
        block = spanned(self.name, USER)
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
    """Operators as ranges in NVIDIA's tools: refused, since nothing runs on their devices.

    Raises:
        AssertionError: always, when the block begins.
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
    """Operators as ranges in Intel's tools: as without such a tool attached, nothing comes of it."""

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
    """Whether events come from the Kineto library: they do not."""
    return False


def _profiler_enabled() -> bool:
    """Whether this thread is being profiled."""
    return recording() is not None


__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]
