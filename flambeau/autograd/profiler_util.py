"""Profiled events: one by one, nested as they ran, and added up by name."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any

from .profiler_table import format_memory, format_share, format_time, render

_format_time, _format_time_share, _format_memory = format_time, format_share, format_memory


class DeviceType(IntEnum):
    """Where an event ran."""

    CPU = 0

    def __repr__(self) -> str:
        return f"<DeviceType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class Interval:
    """A stretch of time, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


class StringTable(defaultdict[str, str]):
    """Names by the names that a machine gave: the same, here."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


def _shown(name: str) -> property:
    return property(lambda self: format_time(getattr(self, name)))


class FormattedTimesMixin:
    """Times as text, and the average over calls; nothing runs on a device."""

    cpu_time_str = _shown("cpu_time")
    cpu_time_total_str = _shown("cpu_time_total")
    self_cpu_time_total_str = _shown("self_cpu_time_total")
    device_time_str = _shown("device_time")
    device_time_total_str = _shown("device_time_total")
    self_device_time_total_str = _shown("self_device_time_total")

    device_time_total = self_device_time_total = device_memory_usage = self_device_memory_usage = 0
    device_time = cuda_time = 0.0

    @property
    def cpu_time(self) -> float:
        """Microseconds, on the average of the calls."""
        count = self.count  # type: ignore[attr-defined]
        return self.cpu_time_total / count if count else 0.0  # type: ignore[attr-defined]


class FunctionEvent(FormattedTimesMixin):
    """One thing that ran: an operator, a node of the graph, a user's block.

    Args:
        id: its number among the events.
        name: what ran.
        thread: the number of the thread.
        start_us, end_us: when, in microseconds from the profile's beginning.
        input_shapes: of the inputs, [] for those that are no tensors.
        stack: the callers, innermost first.
        sequence_nr: of the node recorded, or run; -1 for none.
        fwd_thread: for a node, the thread of the operator that recorded it.

    >>> from flambeau.autograd.profiler_util import FunctionEvent
    >>> FunctionEvent(id=1, name="aten::mul", thread=1, start_us=10, end_us=15).cpu_time_total
    5
    """

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float,
                 overload_name: str | None = None, fwd_thread: int | None = None,
                 input_shapes: list[list[int]] | None = None, stack: list[str] | None = None, scope: int = 0,
                 use_device: str | None = None, cpu_memory_usage: int = 0, device_memory_usage: int = 0,
                 is_async: bool = False, is_remote: bool = False, sequence_nr: int = -1, node_id: int = -1,
                 device_type: DeviceType = DeviceType.CPU, device_index: int = 0, is_legacy: bool = False,
                 flops: int | None = None, trace_name: str | None = None, is_user_annotation: bool = False) -> None:
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes = input_shapes
        self.stack = stack
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.device_type = device_type
        self.device_index = device_index
        self.is_legacy = is_legacy
        self.flops = flops
        self.is_user_annotation = is_user_annotation
        self.kernels: list[Any] = []
        #: of a compiled function's kernel: bytes, arithmetic, whether on float64; and how often
        self.works: Counter[tuple[int, int, bool]] = Counter()

    @property
    def key(self) -> str:
        """What it is grouped by: its name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from its beginning to its end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without those of the events within it."""
        if self.is_async:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes made less freed, without those of the events within it."""
        if self.is_async:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Take in an event that ran within this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Say what it ran within."""
        self.cpu_parent = parent

    def __repr__(self) -> str:
        device = self.use_device
        return (f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
                f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start} end_us={self.time_range.end} "
                f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} "
                f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
                f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
                f"is_legacy={self.is_legacy}>")


class FunctionEventAvg(FormattedTimesMixin):
    """Events of one name, added up.

    >>> from flambeau.autograd.profiler_util import FunctionEvent, FunctionEventAvg
    >>> both = FunctionEventAvg()
    >>> for start, end in ((0, 10), (20, 50)):
    ...     _ = both.add(FunctionEvent(id=0, name="aten::mul", thread=0, start_us=start, end_us=end))
    >>> both.key, both.count, both.cpu_time_total, both.cpu_time
    ('aten::mul', 2, 40, 20.0)
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] | None = None
        self.scope: int | None = None
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.flops = 0
        self.works: Counter[tuple[int, int, bool]] = Counter()

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or a group, of the same name.

        Raises:
            AssertionError: of another name.
        """
        if self.key is None:
            self.key = other.key
            for name in ("node_id", "is_async", "is_remote", "is_legacy", "use_device", "input_shapes",
                         "overload_name", "stack", "scope", "cpu_children", "cpu_parent", "device_type"):
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.count += other.count
        self.flops += other.flops or 0
        self.works += other.works
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
                f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
                f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>")


class EventList(list[Any]):
    """Events, or groups of them, as a list that prints as a table.

    Args:
        profile_memory: whether memory was measured.
    """

    def __init__(self, *args: Any, use_device: str | None = None, profile_memory: bool = False,
                 with_flops: bool = False) -> None:
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    def _build_tree(self) -> None:
        """Say of each event what ran within it, and drop those that only repeat the one around them."""
        self._populate_cpu_children()
        repeated = {id(event) for event in self if event.cpu_parent is not None
                    and event.cpu_parent.name == event.name and len(event.cpu_parent.cpu_children) == 1}
        while repeated:
            for event in self:
                if id(event) in repeated:
                    event.cpu_parent.cpu_children = event.cpu_children
                    for child in event.cpu_children:
                        child.cpu_parent = event.cpu_parent
            self[:] = [event for event in self if id(event) not in repeated]
            repeated = {id(event) for event in self if event.cpu_parent is not None
                        and event.cpu_parent.name == event.name and len(event.cpu_parent.cpu_children) == 1}
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """Nest each thread's events by the time they took: the one around comes first."""
        threads: dict[Any, list[FunctionEvent]] = {}
        for event in self:
            if not event.is_async and event.device_type == DeviceType.CPU:
                threads.setdefault((event.thread, event.node_id), []).append(event)
        for events in threads.values():
            around: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while around and (event.time_range.start >= around[-1].time_range.end
                                  or event.time_range.end > around[-1].time_range.end):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds that events took in all, none counted twice."""
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
              max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80,
              header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None) -> str:
        """The events as a table of plain text.

        Where there are kernels of compiled functions, each has columns of its own: the bytes that it had to move and
        its arithmetic, by the time they took, and what part of the time the machine would have needed at its best,
        which the last line names (`codegen.roofline`).

        Args:
            sort_by: what to sort by, the largest first: "cpu_time_total", "self_cpu_time_total", "cpu_time",
                "cpu_memory_usage", "self_cpu_memory_usage", "count".
            row_limit: how many lines at most; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: where long columns are cut.
            header: a line above the table.
            top_level_events_only: leave out events within others.
            time_unit: "s", "ms" or "us" for all times.
        """
        return render(self, sort_by=sort_by, row_limit=row_limit, header=header,
                      max_src_column_width=max_src_column_width, max_name_column_width=max_name_column_width,
                      max_shapes_column_width=max_shapes_column_width, with_memory=self._profile_memory,
                      top_level_events_only=top_level_events_only, time_unit=time_unit)

    def __str__(self) -> str:
        return self.table()

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """The events added up by name, and by shapes or by the innermost callers as well."""
        groups: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            key: list[Any] = [event.key, event.node_id, event.device_type, event.is_legacy]
            if group_by_overload_name:
                key.append(event.overload_name)
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n > 0:
                key.append(tuple((event.stack or [])[:group_by_stack_n]))
            groups.setdefault(tuple(key), FunctionEventAvg()).add(event)
        averages = EventList(groups.values(), use_device=self._use_device, profile_memory=self._profile_memory,
                             with_flops=self._with_flops)
        for group in averages:
            group.stack = (group.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                group.input_shapes = ""
            if not group_by_overload_name:
                group.overload_name = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None  # names differ
            total.add(event)
        total.key = "Total"
        return total

    # ----- files -----

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as JSON that `chrome://tracing` and Perfetto show."""
        write_trace(path, self, os.getpid())

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can weigh stacks by."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write, for each event, its callers, outermost first, and a weight: what flame graphs are drawn of.

        Raises:
            ValueError: the weight is none of those supported.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        name = metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        blank = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                weight = int(getattr(event, name))
                if event.stack and weight > 0:
                    file.write(";".join(line.translate(blank) for line in reversed(event.stack)) + f" {weight}\n")


def write_trace(path: str | os.PathLike[str], events: Iterable[FunctionEvent], process: int,
                metadata: dict[str, Any] | None = None, thread_of: Callable[[int], int] = lambda number: number,
                began: float = 0.0) -> None:
    """Write events in the Trace Event Format: complete events ("X"), and arrows from operators to their nodes.

    Args:
        thread_of: the system's number of a thread of ours.
        began: when the profile did, in microseconds.
    """
    found: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": process, "tid": 0, "ts": began,
                                    "args": {"name": "python"}}]
    events = list(events)
    for number in dict.fromkeys(event.thread for event in events):
        found.append({"ph": "M", "name": "thread_name", "pid": process, "tid": thread_of(number), "ts": began,
                      "args": {"name": f"thread {thread_of(number)} (python)"}})
    recorded: set[int] = set()
    for event in events:
        place = {"pid": process, "tid": thread_of(event.thread), "ts": began + event.time_range.start}
        if event.name == "[memory]":
            found.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": event.name, **place,
                          "args": {"Bytes": event.cpu_memory_usage, "Device Type": 0, "Device Id": -1}})
            continue
        details: dict[str, Any] = {"External id": event.id}
        if event.sequence_nr >= 0:
            details |= {"Sequence number": event.sequence_nr,
                        "Fwd thread id": thread_of(event.fwd_thread) if event.fwd_thread else 0}
        if event.input_shapes:
            details["Input Dims"] = event.input_shapes
        if event.stack:
            details["Call stack"] = ";".join(event.stack)
        if event.cpu_memory_usage:
            details["Bytes"] = event.cpu_memory_usage
        for moved, flops, _ in event.works:
            details |= {"Bytes moved": moved, "Flops": flops}
        found.append({"ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                      "name": event.trace_name, **place, "dur": event.cpu_time_total, "args": details})
        arrow = {"id": event.sequence_nr, "cat": "fwdbwd", "name": "fwdbwd", **place}
        if event.sequence_nr >= 0 and event.scope == 0 and not event.fwd_thread:
            recorded.add(event.sequence_nr)
            found.append({"ph": "s", **arrow})
        elif event.scope == 1 and event.sequence_nr in recorded:
            found.append({"ph": "f", "bp": "e", **arrow})
    trace = {"schemaVersion": 1, "displayTimeUnit": "ms", **(metadata or {}), "traceEvents": found,
             "traceName": str(path)}
    if str(path).endswith(".gz"):
        import gzip

        with gzip.open(path, "wt", encoding="utf-8") as packed:
            json.dump(trace, packed)
        return
    with open(path, "w", encoding="utf-8") as file:
        json.dump(trace, file)


__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "StringTable"]
