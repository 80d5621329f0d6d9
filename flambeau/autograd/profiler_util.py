"""Profiler events: single events, their nesting, their sums by name, and trace files."""

from __future__ import annotations

import json
import os
import warnings
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from .profiler_table import format_memory, format_share, format_time, render

_format_time, _format_time_share, _format_memory = format_time, format_share, format_memory


class DeviceType(IntEnum):
    """The device type of an event.

    >>> import flambeau as torch
    >>> torch.profiler.DeviceType.CPU
    <DeviceType.CPU: 0>
    """

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __repr__(self) -> str:
        return f"<DeviceType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class Interval:
    """An interval of time, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


class Kernel(NamedTuple):
    """A kernel of a device that an event launched."""

    name: str
    device: int
    duration: float


class EventMetadata(NamedTuple):
    """What a device's profiler knows of an event: launch parameters, memory traffic, collective communication."""

    registers_per_thread: int | None = None
    shared_memory: int | None = None
    grid: list[int] | None = None
    block: list[int] | None = None
    priority: int | None = None
    blocks_per_sm: float | None = None
    warps_per_sm: float | None = None
    occupancy: dict[str, Any] | None = None
    est_occupancy_pct: float | None = None
    queued: int | None = None
    graph_id: int | None = None
    graph_node_id: int | None = None
    stream: int | None = None
    context: int | None = None
    channel: int | None = None
    channel_type: int | None = None
    bytes: int | None = None
    bandwidth_gb_s: float | None = None
    collective_name: str | None = None
    dtype: str | None = None
    in_msg_nelems: int | None = None
    out_msg_nelems: int | None = None
    in_split_size: str | None = None
    out_split_size: str | None = None
    global_rank_start: int | None = None
    global_rank_stride: int | None = None
    group_size: int | None = None
    process_group_name: str | None = None
    process_group_desc: str | None = None
    group_ranks: str | None = None
    rank: int | None = None
    src_rank: int | None = None
    dst_rank: int | None = None
    seq: int | None = None
    is_async: bool | None = None


class MemRecordsAcc:
    """Records of memory by the time at which they start.

    Args:
        mem_records: tuples whose first element has a method `start_ns`.

    >>> from flambeau.autograd.profiler_util import MemRecordsAcc
    >>> list(MemRecordsAcc([]).in_interval(0, 10))
    []
    """

    def __init__(self, mem_records: Sequence[Any]) -> None:
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """The records that start in an interval."""
        yield from self._records[bisect_left(self._starts, start_ns):bisect_right(self._starts, end_ns)]


class StringTable(defaultdict[str, str]):
    """Demangled names by mangled names: names are not mangled here."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


def _warn_of_old_name(message: str) -> None:
    warnings.warn(message, FutureWarning, stacklevel=3)


def _formatted(name: str) -> property:
    return property(lambda self: format_time(getattr(self, name)))


class FormattedTimesMixin:
    """Times as text, and the average over calls. Device times are 0 where no kernel ran on a device."""

    cpu_time_str = _formatted("cpu_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    device_time_str = _formatted("device_time")
    device_time_total_str = _formatted("device_time_total")
    self_device_time_total_str = _formatted("self_device_time_total")

    device_time_total: float = 0
    self_device_time_total: float = 0
    device_memory_usage = self_device_memory_usage = 0

    @property
    def device_time(self) -> float:
        """Average microseconds of a device's kernels per call."""
        count = self.count  # type: ignore[attr-defined]
        return self.device_time_total / count if count else 0.0

    @property
    def cuda_time(self) -> float:
        """`device_time`."""
        return self.device_time

    @property
    def cpu_time(self) -> float:
        """Average microseconds per call."""
        count = self.count  # type: ignore[attr-defined]
        return self.cpu_time_total / count if count else 0.0  # type: ignore[attr-defined]


class FunctionEvent(FormattedTimesMixin):
    """One event: the run of an operator, a graph node, a kernel or a user's block.

    Args:
        id: its number among the events.
        name: the name of the operator, node, kernel or block.
        thread: the number of the thread.
        start_us, end_us: microseconds since the start of the profile.
        input_shapes: of the inputs; [] for non-tensors.
        stack: the call stack, innermost frame first.
        sequence_nr: of the node that was recorded or evaluated; -1 for none.
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
                 device_type: DeviceType = DeviceType.CPU, device_index: int = 0,
                 device_resource_id: int | None = None, is_legacy: bool = False, flops: int | None = None,
                 trace_name: str | None = None, concrete_inputs: list[Any] | None = None,
                 kwinputs: dict[str, Any] | None = None, is_user_annotation: bool = False,
                 is_python_function: bool = False, activity_type: str | None = None, metadata_json: str | None = None,
                 flow_id: int | None = None, flow_type: int | None = None, flow_start: bool | None = None,
                 external_id: int = 0, linked_correlation_id: int = 0, extra_meta: dict[str, Any] | None = None,
                 structured_input_shapes: list[Any] | None = None, structured_input_strides: list[Any] | None = None,
                 input_dtypes: list[str] | None = None, python_id: int = -1, python_parent_id: int = -1,
                 python_module_id: int = -1) -> None:
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
        self.kernels: list[Kernel] = []
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.concrete_inputs, self.kwinputs = concrete_inputs, kwinputs
        self.is_python_function, self.activity_type = is_python_function, activity_type
        self._metadata_json = metadata_json
        self.event_metadata: EventMetadata | None = None
        self.flow_id, self.flow_type, self.flow_start = flow_id, flow_type, flow_start
        self.external_id, self.linked_correlation_id = external_id, linked_correlation_id
        self.structured_input_shapes, self.structured_input_strides = structured_input_shapes, structured_input_strides
        self.input_dtypes = input_dtypes
        self.python_id, self.python_parent_id, self.python_module_id = python_id, python_parent_id, python_module_id
        self.self_cpu_percent = self.total_cpu_percent = self.total_device_percent = -1
        #: of a compiled function's kernel: (bytes, flops, whether float64) -> number of runs
        self.kernel_costs: Counter[tuple[int, int, bool]] = Counter()

    @property
    def key(self) -> str:
        """The name, by which events are grouped."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from start to end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without the events nested in it."""
        if self.is_async:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds of a device's kernels that it, or an event nested in it, launched."""
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes allocated minus freed, without the events nested in it."""
        if self.is_async:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def metadata_json(self) -> str | None:
        """Deprecated: what a device's profiler knows of the event, as JSON; use `event_metadata`."""
        _warn_of_old_name("`metadata_json` is deprecated. Use `event_metadata` instead.")
        return self._metadata_json

    @property
    def self_cuda_memory_usage(self) -> int:
        """Deprecated name of `self_device_memory_usage`."""
        _warn_of_old_name("`self_cuda_memory_usage` is deprecated. Use `self_device_memory_usage` instead.")
        return self.self_device_memory_usage

    @property
    def self_cuda_time_total(self) -> float:
        """Deprecated name of `self_device_time_total`."""
        _warn_of_old_name("`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead.")
        return self.self_device_time_total

    @property
    def cuda_time_total(self) -> float:
        """Deprecated name of `device_time_total`."""
        _warn_of_old_name("`cuda_time_total` is deprecated. Use `device_time_total` instead.")
        return self.device_time_total

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add a kernel that the event launched on a device."""
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add an event that is nested in this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the event in which this one is nested."""
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
    """The sum of events of one name.

    >>> from flambeau.autograd.profiler_util import FunctionEvent, FunctionEventAvg
    >>> average = FunctionEventAvg()
    >>> for start, end in ((0, 10), (20, 50)):
    ...     _ = average.add(FunctionEvent(id=0, name="aten::mul", thread=0, start_us=start, end_us=end))
    >>> average.key, average.count, average.cpu_time_total, average.cpu_time
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
        self.kernel_costs: Counter[tuple[int, int, bool]] = Counter()

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event or a group of the same name.

        Raises:
            AssertionError: the names differ.
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
        self.device_time_total += other.device_time_total
        self.self_device_time_total += other.self_device_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.count += other.count
        self.flops += other.flops or 0
        self.kernel_costs += other.kernel_costs
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
                f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
                f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>")


class EventList(list[Any]):
    """A list of events, or of groups of events, that prints as a table.

    Args:
        profile_memory: whether memory was measured.

    >>> import flambeau as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     _ = torch.ones(2).exp()
    >>> [event.key for event in prof.key_averages() if "exp" in event.key]
    ['aten::exp']
    """

    def __init__(self, *args: Any, use_device: str | None = None, profile_memory: bool = False,
                 with_flops: bool = False) -> None:
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    def _build_tree(self) -> None:
        """Nest the events, and drop an only child that has its parent's name."""
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
        """Nest each thread's events by their intervals."""
        threads: dict[Any, list[FunctionEvent]] = {}
        for event in self:
            if not event.is_async and event.device_type == DeviceType.CPU:
                threads.setdefault((event.thread, event.node_id), []).append(event)
        for events in threads.values():
            enclosing: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while enclosing and (event.time_range.start >= enclosing[-1].time_range.end
                                  or event.time_range.end > enclosing[-1].time_range.end):
                    enclosing.pop()
                if enclosing:
                    enclosing[-1].append_cpu_child(event)
                    event.set_cpu_parent(enclosing[-1])
                enclosing.append(event)

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the events' self times, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
              max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80,
              header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None) -> str:
        """The events as a plain-text table.

        Kernels of compiled functions have additional columns: memory traffic, bandwidth, flop rate, and the ratio of
        the roofline bound to their time. The last line gives the measured peaks (`codegen.roofline`).

        Args:
            sort_by: sort in descending order by "cpu_time_total", "self_cpu_time_total", "cpu_time",
                "cpu_memory_usage", "self_cpu_memory_usage", "count".
            row_limit: the maximum number of rows; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: widths at which columns are truncated.
            header: a line above the table.
            top_level_events_only: omit events nested in others.
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
        """Sums of events by name, optionally also by input shapes or the innermost `group_by_stack_n` frames."""
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
        """The sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None  # names differ
            total.add(event)
        total.key = "Total"
        return total

    # ----- files -----

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a JSON trace for `chrome://tracing` and Perfetto."""
        write_trace(path, self, os.getpid())

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that `export_stacks` accepts."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write each event's call stack, outermost frame first, and its metric: the input of flame graph tools.

        Raises:
            ValueError: the metric is not supported.
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
    """Write events in the Trace Event Format: complete events ("X"), and flow events from operators to their nodes.

    Args:
        thread_of: event thread number -> the operating system's thread id.
        began: the start of the profile, in microseconds.
    """
    records: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": process, "tid": 0, "ts": began,
                                    "args": {"name": "python"}}]
    events = list(events)
    for number in dict.fromkeys(event.thread for event in events):
        records.append({"ph": "M", "name": "thread_name", "pid": process, "tid": thread_of(number), "ts": began,
                      "args": {"name": f"thread {thread_of(number)} (python)"}})
    recorded: set[int] = set()
    for event in events:
        position = {"pid": process, "tid": thread_of(event.thread), "ts": began + event.time_range.start}
        if event.name == "[memory]":
            records.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": event.name, **position,
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
        for moved, flops, _ in event.kernel_costs:
            details |= {"Bytes moved": moved, "Flops": flops}
        records.append({"ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                      "name": event.trace_name, **position, "dur": event.cpu_time_total, "args": details})
        flow = {"id": event.sequence_nr, "cat": "fwdbwd", "name": "fwdbwd", **position}
        if event.sequence_nr >= 0 and event.scope == 0 and not event.fwd_thread:
            recorded.add(event.sequence_nr)
            records.append({"ph": "s", **flow})
        elif event.scope == 1 and event.sequence_nr in recorded:
            records.append({"ph": "f", "bp": "e", **flow})
    trace = {"schemaVersion": 1, "displayTimeUnit": "ms", **(metadata or {}), "traceEvents": records,
             "traceName": str(path)}
    if str(path).endswith(".gz"):
        import gzip

        with gzip.open(path, "wt", encoding="utf-8") as compressed:
            json.dump(trace, compressed)
        return
    with open(path, "w", encoding="utf-8") as file:
        json.dump(trace, file)


__all__ = ["EventList", "EventMetadata", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval",
           "Kernel", "MemRecordsAcc", "StringTable"]
