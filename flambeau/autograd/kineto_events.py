"""`torch._C._autograd`: the recorded events of a profile, `prof.profiler.kineto_results.events()`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ..engine.profiler_events import USER, Span, Timeline, active_timeline
from ..engine.saved.saved_tensors import SavedTensor
from .profiler_util import DeviceType


class ActiveProfilerType(enum.Enum):
    """What records a profile of a thread."""

    NONE, LEGACY, KINETO, NVTX, ITT, PRIVATEUSE1 = range(6)


def _profiler_type() -> ActiveProfilerType:
    """What records a profile of this thread now.

    >>> import flambeau as torch
    >>> with torch.profiler.profile():
    ...     torch._C._autograd._profiler_type().name
    'KINETO'
    """
    return ActiveProfilerType.NONE if active_timeline() is None else ActiveProfilerType.KINETO


class _KinetoEvent:
    """One recorded event; what it has is returned by methods, and times are nanoseconds of one clock.

    >>> import flambeau as torch
    >>> with torch.profiler.profile(record_shapes=True) as prof:
    ...     _ = torch.ones(2, 3).sin()
    >>> event = prof.profiler.kineto_results.events()[-1]
    >>> event.name(), event.shapes(), event.end_ns() - event.start_ns() == event.duration_ns()
    ('aten::sin', [[2, 3]], True)
    """

    __slots__ = ("_number", "_span", "_thread")

    def __init__(self, number: int, span: Span, thread: int) -> None:
        self._number, self._span, self._thread = number, span, thread

    def name(self) -> str:
        """The operator's or the block's name."""
        return self._span.name

    def overload_name(self) -> str:
        """The name of the operator's overload, which is not recorded: empty."""
        return ""

    def device_type(self) -> DeviceType:
        """The type of the device that it ran on."""
        return DeviceType.CPU

    def device_index(self) -> int:
        """The index of the device."""
        return -1

    def device_resource_id(self) -> int:
        """The thread."""
        return self._thread

    def start_ns(self) -> int:
        """The time when it began."""
        return self._span.start

    def end_ns(self) -> int:
        """The time when it ended."""
        return self._span.end

    def duration_ns(self) -> int:
        """How long it took."""
        return self._span.end - self._span.start

    def is_async(self) -> bool:
        """Whether it ended elsewhere than where it was called."""
        return self._span.asynchronous

    def correlation_id(self) -> int:
        """Its number."""
        return self._number

    def linked_correlation_id(self) -> int:
        """The number of the event that launched it on a device: 0."""
        return 0

    def shapes(self) -> list[list[int]]:
        """The shapes of its inputs, where they are recorded."""
        return self._span.shapes or []

    def start_thread_id(self) -> int:
        """The thread that it began in."""
        return self._thread

    def end_thread_id(self) -> int:
        """The thread that it ended in."""
        return self._thread

    def fwd_thread_id(self) -> int:
        """The thread that ran the forward operator, for an event of a backward pass; else 0."""
        return 1 if self._span.forward_thread else 0

    def stack(self) -> list[str]:
        """The call stack, where it is recorded."""
        return self._span.stack or []

    def scope(self) -> int:
        """What it is: an operator (0), a node of a backward pass (1), a block of the user's (7)."""
        return self._span.scope

    def sequence_nr(self) -> int:
        """The number of the node that the operator recorded, or that the event evaluates; -1 for none."""
        return self._span.sequence

    def flops(self) -> int:
        """The floating-point operations, where they are counted."""
        return 0 if self._span.work is None else self._span.work[1]

    def nbytes(self) -> int:
        """The bytes that were allocated in it, less those freed, where memory is recorded."""
        return self._span.bytes

    def cuda_elapsed_us(self) -> int:
        """Microseconds of the kernels that it launched; -1 for none."""
        return self._span.device_time // 1000 if self._span.device_time else -1

    def privateuse1_elapsed_us(self) -> int:
        """Microseconds on a device of a third party: -1, there is none."""
        return -1

    def is_user_annotation(self) -> bool:
        """Whether it is a block of `record_function`."""
        return self._span.scope == USER

    def is_python_function(self) -> bool:
        """Whether it is a call of a Python function: never."""
        return False

    def is_hidden_event(self) -> bool:
        """Whether tables leave it out: never."""
        return False


class _ProfilerResult:
    """The events of a profile that has ended."""

    def __init__(self, timeline: Timeline, threads: Sequence[int]) -> None:
        numbers = {thread: number for number, thread in enumerate(threads, 1)}
        self._start = timeline.start
        self._events = [_KinetoEvent(number, span, numbers.get(span.thread, 1)) for number, span in enumerate(
            (span for span in timeline.spans if span.end), 1)]

    def events(self) -> list[_KinetoEvent]:
        """The events, in the order in which they began."""
        return list(self._events)

    def trace_start_ns(self) -> int:
        """The time when the recording began."""
        return self._start

    def experimental_event_tree(self) -> Any:
        """Not supported: Kineto's tree of events.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("experimental_event_tree: flambeau has no tree of Kineto's events; see "
                                  "`FunctionEvent.cpu_children`")


__all__ = ["ActiveProfilerType", "DeviceType", "SavedTensor", "_KinetoEvent", "_ProfilerResult", "_profiler_type"]
