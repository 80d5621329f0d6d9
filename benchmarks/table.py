"""The table of workloads: every peer beside flambeau."""

from __future__ import annotations

import statistics
from collections.abc import Collection
from typing import Any

from . import markdown, sharing, timing
from .fresh import say
from .peers import COMPILED, EAGER, PEERS
from .row import measure
from .workloads import ROWS
from .workloads.workload import Workload

BASE = "PyTorch eager"

HEADS = ["workload (float32)", *PEERS, "eager vs PyTorch eager", "compiled vs best peer"]

EXPLANATION = """\
One step, or one pass forward and backward, in all columns by turns, each in a process of its own, two threads each:
medians over {rounds} rounds. The ratios are the peer's time over flambeau's, the medians of the rounds' ratios, with
the floor that they are to reach in brackets; **bold**: below it. "PyTorch tuned" has the quicker of its fused and
foreach optimizers. The best peer is the quickest of the four. Every result (outputs, gradients, updated parameters)
was compared with one in float64 before it was timed; a peer that computed something else has no time. Each column
runs for {warm} s before its first turn."""


def ratio(times: dict[str, list[float]], peer: str, ours: str) -> float:
    """Median over the rounds of the peer's time over ours."""
    return statistics.median(a / b for a, b in zip(times[peer], times[ours], strict=True))


def beside_floor(value: float | None, floor: float) -> str:
    """A ratio with its floor."""
    if value is None:
        return f"- ({floor})"
    return f"{value:.2f} ({floor})" if value >= floor else f"**{value:.2f}** ({floor})"


def cells(workload: Workload, times: dict[str, list[float]]) -> markdown.Cells:
    """A line of the table."""
    medians = {peer: statistics.median(values) for peer, values in times.items()}
    others = {peer: value for peer, value in medians.items() if peer not in (EAGER, COMPILED)}
    eager = ratio(times, BASE, EAGER) if {BASE, EAGER} <= times.keys() else None
    compiled = ratio(times, min(others, key=lambda peer: others[peer]), COMPILED) if (
        others and COMPILED in times) else None
    return [workload.title, *(markdown.duration(medians.get(peer)) for peer in PEERS),
            beside_floor(eager, workload.eager_floor), beside_floor(compiled, workload.compiled_floor)]


def remarks(workload: Workload, found: dict[str, Any]) -> list[str]:
    """Which way was the quickest where there was a choice, and who failed."""
    said = [f"{peer}: {way}" for peer, way in found["ways"].items() if way]
    return [f"- {workload.title}: {'; '.join(said + found['notes'])}."] if said or found["notes"] else []


def section(rows: Collection[str], groups: Collection[str], rounds: int) -> str:
    """The rows measured, as Markdown."""
    lines, notes, shared = [], [], []
    for number, name in enumerate(rows, 1):
        workload = ROWS[name]
        say(f"[{number}/{len(rows)}] {workload.title}")
        shared.append(sharing.line())
        found = measure(name, groups, rounds)
        lines.append(cells(workload, found["times"]))
        notes += remarks(workload, found)
    explained = EXPLANATION.format(rounds=rounds, warm=timing.WARM)
    parts = ["## Beside PyTorch and jax", explained, markdown.table(HEADS, lines)]
    if said := sharing.text([*shared, sharing.line()]):
        parts.append(said)
    if notes:
        parts.append("Which way was the quickest where there are several, and what failed:\n\n" + "\n".join(notes))
    return "\n\n".join(parts)
