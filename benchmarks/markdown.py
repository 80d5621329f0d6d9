"""Markdown tables, and durations in them."""

from __future__ import annotations

Cells = list[str]


def duration(value: float | None) -> str:
    """A duration with three digits, in s, ms, µs or ns."""
    if value is None:
        return "-"
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def table(heads: Cells, rows: list[Cells]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
