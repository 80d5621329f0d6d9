"""The table of workloads: flambeau compared with each peer."""

from __future__ import annotations

import statistics
from collections.abc import Collection
from typing import Any

from . import markdown, sharing, timing
from .child_process import log
from .peers import COMPILED, EAGER, PEERS
from .row import measure
from .workloads import WORKLOADS
from .workloads.workload import Workload

BASE = "PyTorch eager"

HEADS = ["workload (float32)", *PEERS, "eager vs PyTorch eager", "compiled vs best peer"]

EXPLANATION = """\
Each row is one step, or one forward and backward pass. The columns run alternately, each in its own process with two
threads: medians over {rounds} rounds. Ratios are the peer's time over flambeau's, medians of the rounds' ratios, with
the target in brackets; **bold** is below the target. "PyTorch tuned" uses the faster of its fused and foreach
optimizers. The best peer is the fastest of the four. All results (outputs, gradients, updated parameters) are compared
with float64 before timing; a peer with a mismatch has no time. Each column warms up for {warm} s."""


def ratio(times: dict[str, list[float]], peer: str, ours: str) -> float:
    """The median over the rounds of the ratio of the peer's time to flambeau's."""
    return statistics.median(a / b for a, b in zip(times[peer], times[ours], strict=True))


def with_target(value: float | None, target: float) -> str:
    """A ratio with its target; bold if below it."""
    if value is None:
        return f"- ({target})"
    return f"{value:.2f} ({target})" if value >= target else f"**{value:.2f}** ({target})"


def cells(workload: Workload, times: dict[str, list[float]]) -> markdown.Cells:
    """The cells of a row."""
    medians = {peer: statistics.median(values) for peer, values in times.items()}
    others = {peer: value for peer, value in medians.items() if peer not in (EAGER, COMPILED)}
    eager = ratio(times, BASE, EAGER) if {BASE, EAGER} <= times.keys() else None
    compiled = ratio(times, min(others, key=lambda peer: others[peer]), COMPILED) if (
        others and COMPILED in times) else None
    return [workload.title, *(markdown.duration(medians.get(peer)) for peer in PEERS),
            with_target(eager, workload.eager_floor), with_target(compiled, workload.compiled_floor)]


def remarks(workload: Workload, measured: dict[str, Any]) -> list[str]:
    """The fastest variants where there are several, and failures."""
    parts = [f"{peer}: {variant}" for peer, variant in measured["variants"].items() if variant]
    return [f"- {workload.title}: {'; '.join(parts + measured['notes'])}."] if parts or measured["notes"] else []


def section(rows: Collection[str], groups: Collection[str], rounds: int,
            heading: str = "Comparison with PyTorch and jax") -> str:
    """The section as Markdown."""
    lines, notes, shared = [], [], []
    for number, name in enumerate(rows, 1):
        workload = WORKLOADS[name]
        log(f"[{number}/{len(rows)}] {workload.title}")
        shared.append(sharing.line())
        measured = measure(name, groups, rounds)
        lines.append(cells(workload, measured["times"]))
        notes += remarks(workload, measured)
    explanation = EXPLANATION.format(rounds=rounds, warm=timing.WARM)
    parts = [f"## {heading}", explanation, markdown.table(HEADS, lines)]
    if sentence := sharing.text([*shared, sharing.line()]):
        parts.append(sentence)
    if notes:
        parts.append("The fastest variants where there are several, and failures:\n\n" + "\n".join(notes))
    return "\n\n".join(parts)
