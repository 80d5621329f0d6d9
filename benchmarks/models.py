"""Whole models: seconds of a step beside PyTorch and jax, and peak memory beside PyTorch.

    python -m benchmarks.models --rows resnet18 gnn --rounds 5
    python -m benchmarks.models --write benchmarks/models.md
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Collection
from pathlib import Path

from . import limits, markdown, table
from .child_process import log, run_child
from .footprint import PEERS, STEPS
from .peers import available
from .row import GROUPS
from .workloads import MODELS


def memory(rows: Collection[str], rounds: int) -> str:
    """The peak of resident memory of each model and library, as Markdown: medians over at most three processes."""
    lines: list[markdown.Cells] = []
    for name in rows:
        cells: list[str] = []
        for peer in PEERS:
            repeats = min(rounds, 3) if available(peer) else 0
            found = [pair for pair in (run_child("footprint", name, peer) for _ in range(repeats)) if pair is not None]
            cells.append(" / ".join(f"{statistics.median(column) / 1e6:,.0f}" for column in zip(*found, strict=True))
                         or "-")
        lines.append([MODELS[name].title, *cells])
        log(f"peak memory, {name}: {', '.join(cells)}")
    return (f"Peak of resident memory above that of the model, in MB: during the first {STEPS} steps, compilation "
            f"included / during the next\n{STEPS}, in new processes.\n\n" + markdown.table(["", *PEERS], lines))


def section(rounds: int, rows: Collection[str] = tuple(MODELS), groups: Collection[str] = tuple(GROUPS)) -> str:
    """The section as Markdown."""
    note = ("Results of image models are compared at 2 of 4 stages (ResNet-18 at 32 x 32 pixels, the U-Net) and 3 of\n"
            "11 blocks, as rectifiers and norms amplify rounding. Those of GPT-2 are compared at 3 layers and a\n"
            "vocabulary of 1,000: the whole model in float64 and its results take several GB.")
    parts = [table.section(rows, groups, rounds, "Whole models"), note]
    if Path("/proc/self/clear_refs").exists():
        parts.append(memory(rows, rounds))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--peers", nargs="*", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    limits.apply()
    text = section(options.rounds, options.rows, options.peers)
    print(text)
    if options.write:
        options.write.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
