"""Arrays of another shape in every call: text that grows by a token at a time, batches of unlike lengths.

    python -m benchmarks.growing text flambeau      milliseconds a call, in this process

What is planned or compiled for each shape anew counts here, and nowhere else. Run eagerly, with a model as in the
row `gpt` and lengths up to 128: first each length once, then the same again.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import markdown
from .fresh import answer, found_by, say
from .peers import library
from .startup import caches
from .workloads import ROWS, gpt

TITLES = {"text": "a token more in every call, no_grad", "batches": "training, 8 texts of another length in every call"}
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
    """Milliseconds a call: medians while lengths are new, and when they come again."""
    torch = library(LIBRARIES[name])
    torch.manual_seed(0)
    model = gpt.model(torch, SIZES)
    run = _batches(torch, model) if kind == "batches" else lambda length: _text(torch, model, length)
    lengths = [int(n) for n in np.random.default_rng(0).permutation(np.arange(8, LENGTHS + 1))]
    if kind == "text":
        lengths.sort()
    found = []
    for _ in range(2):
        times = []
        for length in lengths:
            started = time.perf_counter()
            run(length)
            times.append(time.perf_counter() - started)
        found.append(1e3 * statistics.median(times))
    return found[0], found[1]


def section(rounds: int) -> str:
    """Medians over fresh processes, at most three, as Markdown."""
    rows = []
    for kind, title in TITLES.items():
        for name in LIBRARIES:
            found = []
            for _ in range(min(rounds, 3)):
                with tempfile.TemporaryDirectory() as folder:
                    cold, warm = (found_by("growing", kind, name, environment=caches(folder)) for _ in range(2))
                    if cold is not None and warm is not None:
                        found.append((cold[0], warm[0], warm[1]))
            times = [statistics.median(each) for each in zip(*found, strict=True)] if found else [None] * 3
            rows.append([title, name, *(markdown.duration(None if t is None else t / 1e3) for t in times)])
            say(f"growing, {kind}, {name}: {', '.join(rows[-1][2:])}")
    return (f"## Another shape in every call\n\nThe GPT of the table, lengths 8 to {LENGTHS}, run eagerly: the median "
            "call while each length is new, in a process that\nfinds an empty folder for compiled code and in the "
            "next one, and when the same lengths come again.\n\n"
            + markdown.table(["", "", "new, first process", "new, second process", "again"], rows))


if __name__ == "__main__":
    answer((__doc__ or "").splitlines()[0], TITLES, LIBRARIES, measure)
