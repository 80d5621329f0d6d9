"""Charts of what processes do when: passes and reductions of a step, actions of a pipeline's stages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..training.canvas import INK, MUTED, axes_for, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORWARD, _BACKWARD, _WEIGHT, _MESSAGES = "#93c5fd", "#2563eb", "#0d9488", "#ea580c"
_ACTION = re.compile(r"(\d+)([FBIW])(\d+)$")
_COLLECTIVE = re.compile(r"(gloo|mpi|nccl|ucc|xccl|\w+):(all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|"
                         r"reduce|gather|scatter|send|recv|barrier|monitored_barrier)$")

Interval = tuple[float, float]


def _united(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals, in order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _length(intervals: Iterable[Interval]) -> float:
    return sum(end - start for start, end in intervals)


def _common(one: Sequence[Interval], other: Sequence[Interval]) -> float:
    """The length of what two unions have in common."""
    return _length(one) + _length(other) - _length(_united([*one, *other]))


def spans_of_ranks(trace: Mapping[str, Any]) -> dict[int, dict[str, list[Interval]]]:
    """The times of a joined trace in which each rank computes forward, backward, and exchanges messages.

    Args:
        trace: what `join_traces` returns.

    Returns:
        Rank -> `"forward"`, `"backward"` and `"messages"` -> intervals in milliseconds.
    """
    found: dict[int, dict[str, list[Interval]]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            continue
        name, row = event["name"], found.setdefault(event["pid"], {"forward": [], "backward": [], "messages": []})
        interval = event["ts"] / 1e3, (event["ts"] + event["dur"]) / 1e3
        if _COLLECTIVE.match(name):
            row["messages"].append(interval)
        elif name.startswith("autograd::engine::evaluate_function"):
            row["backward"].append(interval)
        elif name.startswith("aten::"):
            row["forward"].append(interval)
    for row in found.values():
        for kind in row:
            row[kind] = _united(row[kind])
        inside = row["backward"]
        row["forward"] = [each for each in row["forward"]
                          if not any(start <= each[0] and each[1] <= end for start, end in inside)]
    return dict(sorted(found.items()))


def overlap(trace: Mapping[str, Any]) -> dict[int, float]:
    """The share of each rank's time of messages in which its backward pass computes.

    Args:
        trace: what `join_traces` returns.

    >>> from flambeau.viz.processes.charts import overlap
    >>> events = [{"ph": "X", "pid": 0, "ts": 0, "dur": 4, "name": "autograd::engine::evaluate_function: SumBackward0"},
    ...           {"ph": "X", "pid": 0, "ts": 3, "dur": 4, "name": "gloo:all_reduce"}]
    >>> overlap({"traceEvents": events})
    {0: 0.25}
    """
    shares = {}
    for rank, row in spans_of_ranks(trace).items():
        whole = _length(row["messages"])
        shares[rank] = round(_common(row["backward"], row["messages"]) / whole, 6) if whole else 0.0
    return shares


def plot_ranks(trace: Mapping[str, Any], *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot a joined trace: for each rank what it computes, and below that the messages beside it.

    Orange below blue is a reduction that the backward pass hides; orange below white is time that is waited for.

    Args:
        trace: what `join_traces` returns.
        title: the title.
        ax: the axes; a new figure if None.

    Returns:
        The axes.

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from flambeau.viz import plot_ranks
    >>> events = [{"ph": "X", "pid": 0, "ts": 3, "dur": 4, "name": "gloo:all_reduce"}]
    >>> [label.get_text() for label in plot_ranks({"traceEvents": events}).get_yticklabels()]
    ['rank 0']
    """
    rows = spans_of_ranks(trace)
    ax = axes_for(ax, 8.0, 1.3 + 0.55 * len(rows))
    first = min((each[0] for row in rows.values() for spans in row.values() for each in spans), default=0.0)
    for place, row in enumerate(rows.values()):
        for kind, colour, bottom, height in (("forward", _FORWARD, 0.0, 0.42), ("backward", _BACKWARD, 0.0, 0.42),
                                             ("messages", _MESSAGES, 0.44, 0.3)):
            ax.broken_barh([(start - first, end - start) for start, end in row[kind]], (place - 0.38 + bottom, height),
                           facecolors=colour, label=kind if place == 0 else None, linewidth=0)
    _rows(ax, [f"rank {rank}" for rank in rows])
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28 if len(rows) < 4 else -0.16), ncols=3, frameon=False,
              fontsize=9)
    return titled(ax, title, "time in ms")


def _rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), list(names), fontsize=9)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.grid(False, axis="y")


def plot_pipeline(timelines: Mapping[int, Sequence[tuple[Any, float, float]]], *, unit: str = "ms",
                  title: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot the actions of a pipeline's processes: what is white is idle.

    Forward passes are light, gradients of inputs (or of all) blue, gradients of weights green; numbers are
    microbatches. Stages after the first of a process have darker edges.

    Args:
        timelines: rank -> its actions with their starts and ends: `schedule.timeline`, in seconds, or what
            `simulate` returns.
        unit: `"ms"` if they are seconds; other texts name the unit of times that are drawn as they are.
        title: the title; the share of idle time is added.
        ax: the axes; a new figure if None.

    Returns:
        The axes.

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from flambeau.viz import plot_pipeline
    >>> times = {0: [("0F0", 0., 1.), ("0B0", 3., 5.)], 1: [("1F0", 1., 2.), ("1B0", 2., 3.)]}
    >>> plot_pipeline(times, unit="steps", title="GPipe").get_title(loc="left")
    'GPipe: 50 % idle'
    """
    spans = {rank: [(str(action), start, end) for action, start, end in actions]
             for rank, actions in sorted(timelines.items())}
    ax = axes_for(ax, 8.0, 1.0 + 0.42 * len(spans))
    first = min((start for actions in spans.values() for _, start, _ in actions), default=0.0)
    last = max((end for actions in spans.values() for _, _, end in actions), default=first)
    scale = 1e3 if unit == "ms" else 1.0
    whole = (last - first) * scale
    for place, actions in enumerate(spans.values()):
        lowest = min((int(found[1]) for name, _, _ in actions if (found := _ACTION.match(name))), default=0)
        for name, start, end in actions:
            found = _ACTION.match(name)
            kind, stage, number = (found[2], int(found[1]), found[3]) if found else ("B", lowest, "")
            colour = {"F": _FORWARD, "W": _WEIGHT}.get(kind, _BACKWARD)
            left, width = (start - first) * scale, (end - start) * scale
            ax.barh(place, width, left=left, height=0.72, color=colour, linewidth=1.2 if stage > lowest else 0.5,
                    edgecolor=INK if stage > lowest else "white")
            if whole and width / whole > 0.014 * len(number):
                ax.text(left + width / 2, place, number, ha="center", va="center", fontsize=7.5,
                        color=INK if kind == "F" else "white")
    busy = sum(end - start for actions in spans.values() for _, start, end in actions) * scale
    idle = 1 - busy / (whole * len(spans)) if whole else 0.0
    _rows(ax, [f"rank {rank}" for rank in spans])
    ax.set_xlim(0, whole or 1)
    ax.tick_params(axis="x", colors=MUTED)
    return titled(ax, f"{title}: {idle:.0%} idle".replace("%", " %") if title else f"{100 * idle:.0f} % idle",
                  f"time in {unit}")


__all__ = ["overlap", "plot_pipeline", "plot_ranks", "spans_of_ranks"]
