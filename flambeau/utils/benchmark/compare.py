"""`Compare`: a table of measurements."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from .measurement import Measurement, select_unit


class Colorize(enum.Enum):
    """Which measurements are compared by color.

    >>> from flambeau.utils.benchmark import Colorize
    >>> Colorize("rowwise").name
    'ROWWISE'
    """

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements: a row for each sublabel, a column for each description.

    Args:
        results: the measurements.

    >>> from flambeau.utils.benchmark import Compare, Timer
    >>> print(str(Compare([Timer("1 + 1", label="sum", sub_label="ints", description="+").timeit(10)])).split()[1])
    sum
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._figures = False
        self._mark_warnings = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements.

        Raises:
            ValueError: anything else.
        """
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
            self._results.append(each)

    def trim_significant_figures(self) -> None:
        """Print only the digits that the spread of the times leaves."""
        self._figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Mark the fastest of each column; no effect in plain text."""

    def highlight_warnings(self) -> None:
        """Mark measurements whose times spread much."""
        self._mark_warnings = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = list(dict.fromkeys(each.task_spec.label for each in merged))
        return "\n".join(self._table(label, [each for each in merged if each.task_spec.label == label])
                         for label in labels)

    def _cell(self, measurement: Measurement | None, length: float) -> str:
        if measurement is None:
            return ""
        value = measurement.median / length
        text = f"{value:.{measurement.significant_figures}g}" if self._figures else f"{value:.1f}"
        if self._mark_warnings and measurement.has_warnings:
            text += f" (! {measurement.iqr / measurement.median * 100:.0f}%)"
        return text

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, length = select_unit(min(each.median for each in results))
        columns = list(dict.fromkeys(each.task_spec.description for each in results))
        lines: list[tuple[str, list[str]]] = []
        for threads in sorted({each.task_spec.num_threads for each in results}):
            lines.append((f"{threads} thread{'s' * (threads > 1)}: ", []))
            group = [each for each in results if each.task_spec.num_threads == threads]
            for row in dict.fromkeys((each.task_spec.env, each.as_row_name) for each in group):
                cells = {each.task_spec.description: each for each in group
                         if (each.task_spec.env, each.as_row_name) == row}
                name = f"      {row[1]}" + (f" ({row[0]})" if row[0] else "")
                lines.append((name, [self._cell(cells.get(column), length) for column in columns]))
        left = max(len(name) for name, _ in lines)
        widths = [max(len(column or ""), *(len(cells[i]) for _, cells in lines if cells))
                  for i, column in enumerate(columns)]
        header = "  |  ".join([" " * left, *((column or "").center(width)
                                             for column, width in zip(columns, widths, strict=True))])
        body = [name.ljust(len(header), "-") if not cells else
                "  |  ".join([name.ljust(left), *(cell.rjust(width)
                                                  for cell, width in zip(cells, widths, strict=True))])
                for name, cells in lines]
        title = f" {label} ".center(len(header) - 2, "-") if label else "-" * (len(header) - 2)
        names = {"s": "seconds (s)", "ms": "milliseconds (ms)", "us": "microseconds (us)", "ns": "nanoseconds (ns)"}
        return "\n".join([f"[{title}]", header, *body, "", f"Times are in {names[unit]}.", ""])


__all__ = ["Colorize", "Compare"]
