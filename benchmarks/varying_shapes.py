"""A different input shape in each call: text that grows by one token, batches of different lengths.

    python -m benchmarks.varying_shapes text flambeau      milliseconds a call, in this process

This measures planning and compilation per shape. The model of the row `gpt` runs eagerly with lengths up to 128: each
length once, then the same lengths again.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import markdown
from .child_process import child_main, log, run_child
from .peers import library
from .startup import caches
from .workloads import ROWS, gpt

TITLES = {"text": "one more token in each call, no_grad",
          "batches": "training, 8 texts of a different length in each call"}
LIBRARIES = {"PyTorch eager": "torch", "flambeau eager": "flambeau"}
LENGTHS = 128
SIZES = {**ROWS["gpt"].sizes, "context": LENGTHS}


def _text(torch: Any, model: Any, length: int) -> None:
    with torch.no_grad():
        torch.multinomial(model(torch.zeros(1, length, dtype=torch.int64))[:, -1].softmax(-1), 1)


def _batches(torch: Any, model: Any) -> Callable[[int], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def run(length: int) -> None:
        x = torch.zeros(8, length, dtype=torch.int64)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
        optimizer.step()

    return run


def measure(kind: str, name: str) -> tuple[float, float]:
    """Median milliseconds per call: for new lengths, and for the same lengths again."""
    torch = library(LIBRARIES[name])
    torch.manual_seed(0)
    model = gpt.model(torch, SIZES)
    run = _batches(torch, model) if kind == "batches" else lambda length: _text(torch, model, length)
    lengths = [int(n) for n in np.random.default_rng(0).permutation(np.arange(8, LENGTHS + 1))]
    if kind == "text":
        lengths.sort()
    medians = []
    for _ in range(2):
        times = []
        for length in lengths:
            started = time.perf_counter()
            run(length)
            times.append(time.perf_counter() - started)
        medians.append(1e3 * statistics.median(times))
    return medians[0], medians[1]


def section(rounds: int) -> str:
    """The section as Markdown: medians over new processes, at most three."""
    rows = []
    for kind, title in TITLES.items():
        for name in LIBRARIES:
            results = []
            for _ in range(min(rounds, 3)):
                with tempfile.TemporaryDirectory() as folder:
                    cold, warm = (run_child("varying_shapes", kind, name, environment=caches(folder)) for _ in range(2))
                    if cold is not None and warm is not None:
                        results.append((cold[0], warm[0], warm[1]))
            times = [statistics.median(each) for each in zip(*results, strict=True)] if results else [None] * 3
            rows.append([title, name, *(markdown.duration(None if t is None else t / 1e3) for t in times)])
            log(f"varying_shapes, {kind}, {name}: {', '.join(rows[-1][2:])}")
    return (f"## A different shape in each call\n\nThe GPT of the table, eager, lengths 8 to {LENGTHS}: the median "
            "call with a new length, in a process with an empty\ncache of compiled code and in the next process, and "
            "with the same lengths again.\n\n"
            + markdown.table(["", "", "new, first process", "new, second process", "again"], rows))


if __name__ == "__main__":
    child_main((__doc__ or "").splitlines()[0], TITLES, LIBRARIES, measure)
