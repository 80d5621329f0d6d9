"""Profiles as plain-text tables: one row for each event or group of events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..codegen.roofline import Peaks

_WIDTH = 12  # of a numeric column
_GAP = "  "

#: unit of time -> microseconds
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_LARGE = (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024))


def format_time(microseconds: float, unit: str | None = None) -> str:
    """A duration, in the given unit or the largest in which it is at least 1.

    >>> from flambeau.autograd.profiler_table import format_time
    >>> format_time(1500.0), format_time(2.5)
    ('1.500ms', '2.500us')
    """
    if unit not in _UNITS:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def format_share(microseconds: float, total: float) -> str:
    """A fraction of the total in percent."""
    if total:
        return f"{100 * microseconds / total:.2f}%"
    if microseconds:
        raise AssertionError(f"Expected time_us == 0 but got {microseconds}")
    return "NaN"


def format_memory(size: int) -> str:
    """A number of bytes with a binary unit.

    >>> from flambeau.autograd.profiler_table import format_memory
    >>> format_memory(400), format_memory(-2048)
    ('400 B', '-2.00 KB')
    """
    for name, unit in _LARGE:
        if abs(size) >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} B"


class _Column:
    """One column: its header, its width, the text of an event's cell, and its alignment."""

    def __init__(self, head: str, width: int, cell: Callable[[Any], str], *, left: bool = False) -> None:
        self.head, self.width, self.cell, self.left = head, width, cell, left

    def fill(self, text: str) -> str:
        """A text padded to the column's width, and the gap after it."""
        return (text.ljust(self.width) if self.left else text.rjust(self.width)) + _GAP


def _truncated(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) < longest - 3 else text[: longest - 3] + "..."


def _column_width(texts: Sequence[str], longest: int | None) -> int:
    width = max(len(text) for text in texts) + 4
    return width if longest is None else min(width, longest)


def render(events: Sequence[Any], *, sort_by: str | None = None, row_limit: int = 100, header: str | None = None,
           max_src_column_width: int | None = 75, max_name_column_width: int | None = 55,
           max_shapes_column_width: int | None = 80, with_memory: bool = False, top_level_events_only: bool = False,
           time_unit: str | None = None) -> str:
    """The table of events or groups of events; empty without events.

    Args:
        sort_by: the attribute to sort by, in descending order. Default: the order of the events.
        row_limit: the maximum number of rows; negative for all.
        header: a line above the table.
        with_memory: whether memory was measured.
        top_level_events_only: omit events nested in others.
        time_unit: "s", "ms" or "us" for all times.
    """
    if not events:
        return ""
    if sort_by is not None:
        key = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        events = sorted(events, key=lambda event: getattr(event, key), reverse=True)
    total = sum(event.self_cpu_time_total for event in events)
    columns = _columns(events, total, max_src_column_width, max_name_column_width, max_shapes_column_width,
                       with_memory, time_unit)
    measured = None
    if any(event.kernel_costs for event in events):
        from ..codegen.roofline import peaks

        measured = peaks()
        columns += _roofline(measured)
    rule = "".join("-" * column.width + _GAP for column in columns)
    lines = []
    if header is not None or top_level_events_only:
        lines.append("=" * (len(rule) - len(_GAP)))
    if header is not None:
        lines.append(header)
    if top_level_events_only:
        lines.append("This report only display top-level ops statistics")
    lines += [rule, "".join(column.fill(column.head) for column in columns), rule]
    shown = [event for event in events if not (top_level_events_only and event.cpu_parent is not None)]
    sources = next((column for column in columns if column.head == "Source Location"), None)
    for event in shown if row_limit < 0 else shown[:row_limit]:
        lines.append("".join(column.fill(column.cell(event)) for column in columns))
        if sources is not None:  # the rest of the stack, below its first frame
            before = "".join(column.fill("") for column in columns[:-1])
            lines += [before + sources.fill(_source(line, sources.width)) for line in [*event.stack[1:], ""]]
    lines += [rule, f"Self CPU time total: {format_time(total, time_unit)}"]
    on_device = sum(event.self_device_time_total for event in events)
    if on_device:
        lines.append(f"Self CUDA time total: {format_time(on_device, time_unit)}")
    lines += [""] if measured is None else [f"Peaks measured here: {measured}", ""]
    return "\n".join(lines)


def _source(line: str, width: int) -> str:
    return line if len(line) <= width else "..." + line[len(line) - width + 3:]


def _roofline(peaks: Peaks) -> list[_Column]:
    """Columns that compare kernels with the machine's peaks (roofline)."""

    def moved(event: Any) -> int:
        return sum(size * count for (size, _, _), count in event.kernel_costs.items())

    def computed(event: Any) -> int:
        return sum(flops * count for (_, flops, _), count in event.kernel_costs.items())

    def rate(event: Any, amount: float) -> str:
        seconds = event.self_cpu_time_total / 1e6
        return f"{amount / seconds / 1e9:.2f}" if event.kernel_costs and seconds else ""

    def share(event: Any) -> str:
        bound = sum(peaks.seconds(*work) * count for work, count in event.kernel_costs.items())
        return format_share(bound * 1e6, event.self_cpu_time_total) if event.kernel_costs else ""

    return [_Column("Moved", _WIDTH, lambda e: format_memory(moved(e)) if e.kernel_costs else ""),
            _Column("GB/s", _WIDTH, lambda e: rate(e, moved(e))),
            _Column("Gflop/s", _WIDTH, lambda e: rate(e, computed(e))),
            _Column("Of peak", _WIDTH, share)]


def _columns(events: Sequence[Any], total: float, source_width: int | None, name_width: int | None,
             shapes_width: int | None, with_memory: bool, unit: str | None) -> list[_Column]:
    names = _column_width([event.key for event in events], name_width)

    def time(value: float) -> str:
        return format_time(value, unit)

    columns = [
        _Column("Name", names, lambda e: _truncated(e.key, name_width)),
        _Column("Self CPU %", _WIDTH, lambda e: format_share(e.self_cpu_time_total, total)),
        _Column("Self CPU", _WIDTH, lambda e: time(e.self_cpu_time_total)),
        _Column("CPU total %", _WIDTH, lambda e: "0" if e.is_async else format_share(e.cpu_time_total, total)),
        _Column("CPU total", _WIDTH, lambda e: time(e.cpu_time_total)),
        _Column("CPU time avg", _WIDTH, lambda e: time(e.cpu_time)),
    ]
    on_device = sum(event.self_device_time_total for event in events)
    if on_device:
        columns += [
            _Column("Self CUDA", _WIDTH, lambda e: time(e.self_device_time_total)),
            _Column("Self CUDA %", _WIDTH, lambda e: format_share(e.self_device_time_total, on_device)),
            _Column("CUDA total", _WIDTH, lambda e: time(e.device_time_total)),
            _Column("CUDA time avg", _WIDTH + 1, lambda e: time(e.device_time)),
        ]
    if with_memory:
        columns += [_Column("CPU Mem", _WIDTH, lambda e: format_memory(e.cpu_memory_usage)),
                    _Column("Self CPU Mem", _WIDTH, lambda e: format_memory(e.self_cpu_memory_usage))]
    columns.append(_Column("# of Calls", _WIDTH, lambda e: str(e.count)))
    if any(event.node_id != -1 for event in events):
        columns.append(_Column("Node ID", _WIDTH, lambda e: str(e.node_id)))
    if any(event.input_shapes for event in events):
        shapes = _column_width([str(event.input_shapes) for event in events], shapes_width)
        columns.append(_Column("Input Shapes", shapes, lambda e: str(e.input_shapes)[:shapes]))
    stacks = [event.stack for event in events if event.stack]
    if stacks:
        sources = _column_width([line for stack in stacks for line in stack], source_width)
        columns.append(_Column("Source Location", sources,
                               lambda e: _source(e.stack[0], sources) if e.stack else "", left=True))
    return columns
