"""`TaskSpec` and `Measurement`: what was timed, and its times with their statistics."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from math import ceil, log10
from typing import Any

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is printed, and its length in seconds.

    >>> from flambeau.utils.benchmark import select_unit
    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    for length, name in _UNITS:
        if t >= length:
            return name, length
    return _UNITS[-1][1], _UNITS[-1][0]


@dataclass(frozen=True)
class TaskSpec:
    """What is timed: a statement and how the measurement is labelled.

    >>> from flambeau.utils.benchmark import TaskSpec
    >>> TaskSpec("x + 1", "x = 1", label="addition").title
    'addition'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, with the sublabel."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return (f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n"
                + "\n".join(f"  {line}" for line in self.stmt.splitlines()))

    def setup_str(self) -> str:
        """The setup as a line or block; empty without one."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" not in self.setup:
            return f"setup: {self.setup}"
        return "setup:\n" + "\n".join(f"  {line}" for line in self.setup.splitlines())

    def summarize(self) -> str:
        """Title, description, setup and number of threads."""
        return "\n".join(line for line in (self.title, self.description or "", self.setup_str()) if line)


@dataclass
class Measurement:
    """The times of runs of a statement, in seconds per run.

    Args:
        number_per_run: the number of runs that each time is of.
        raw_times: the times of blocks of that many runs.
        task_spec: what was timed.
        metadata: anything that the caller adds.

    >>> from flambeau.utils.benchmark import Measurement, TaskSpec
    >>> found = Measurement(10, [0.02, 0.04, 0.03], TaskSpec("x + 1", ""))
    >>> found.median
    0.003
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    @property
    def title(self) -> str:
        """The title of what was timed."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The environment that the caller named, or what stands for none."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def times(self) -> list[float]:
        """The times of one run each."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median time of a run."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean time of a run."""
        return statistics.fmean(self.times)

    @property
    def _quartiles(self) -> tuple[float, float]:
        ordered = sorted(self.times)

        def quantile(q: float) -> float:
            position = q * (len(ordered) - 1)
            low = int(position)
            high = min(low + 1, len(ordered) - 1)
            return ordered[low] + (ordered[high] - ordered[low]) * (position - low)

        return quantile(0.25), quantile(0.75)

    @property
    def iqr(self) -> float:
        """The range between the quartiles."""
        low, high = self._quartiles
        return high - low

    @property
    def significant_figures(self) -> int:
        """The number of digits that the spread of the times leaves."""
        if not self.median:
            return 1
        interval = max(self.iqr / 1.34896 / max(len(self.times), 1) ** 0.5 * 1.645, self.median * 1e-4)
        return max(1, min(4, ceil(log10(self.median / interval)) if interval < self.median else 1))

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so much that they say little."""
        return self.iqr > 0.1 * self.median

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the spread is below a fraction of the median."""
        return self.iqr / self.median < threshold if self.median else True

    def __getattr__(self, name: str) -> Any:
        if (name != "task_spec" and hasattr(TaskSpec, name)) or name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(name)

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, length = select_unit(self.median)
        count = len(self.raw_times)
        lines = [f"<{__name__.rpartition('.')[0]}.Measurement object at {hex(id(self))}>", self.task_spec.summarize()]
        if count > 1:
            low, high = self._quartiles
            lines.append(f"  Median: {self.median / length:.2f} {unit}")
            lines.append(f"  IQR:    {self.iqr / length:.2f} {unit} ({low / length:.2f} to {high / length:.2f})")
        else:
            lines.append(f"  {self.median / length:.2f} {unit}")
        threads = self.task_spec.num_threads
        lines.append(f"  {count} measurement{'s' * (count > 1)}, {self.number_per_run} runs "
                     f"{'per measurement' if count > 1 else ''}, {threads} thread{'s' * (threads > 1)}")
        if count > 1 and self.has_warnings:
            lines.append(f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median "
                         "measurement.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Any) -> list[Measurement]:
        """The measurements of equal tasks, joined."""
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for each in measurements:
            grouped.setdefault(each.task_spec, []).append(each)
        return [replace(group[0], number_per_run=1, raw_times=[t for each in group for t in each.times])
                for group in grouped.values()]


__all__ = ["Measurement", "TaskSpec", "select_unit"]
