"""The table of workloads on a GPU: flambeau beside PyTorch and jax, with shares of the roofline and memory."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import markdown
from ..gpt2 import GPT2_ROWS
from ..peers import COMPILED, EAGER
from .cases import COLUMNS, CONVOLUTIONS, Case, Libraries, Running, cases, has

#: part of a GPU's name -> bytes per second of memory, operations per second in float32, TF32 and bfloat16
PEAKS = {"H200": (4.8e12, 67e12, 494e12, 989e12), "H100": (3.35e12, 67e12, 494e12, 989e12),
         "A100": (2.04e12, 19.5e12, 156e12, 312e12), "4090": (1.01e12, 82.6e12, 82.6e12, 165e12)}
PYTORCH = "PyTorch eager"
HEADS = ["row", *COLUMNS, "PyTorch eager / eager", "best peer / compiled", "roofline: compiled, best peer",
         "GiB: PyTorch, torch.compile, eager, compiled"]
#: rows that compilers take longest for
_SLOW = ("gpt", "cnn", "rnn", "mlp-adam", "mlp-sgd", "mlp-tiny")
#: relative difference of what two libraries compute, from which on it is noted
_AGREEMENT = 2e-2

EXPLANATION = (
    "Each row is one step, or one forward and backward pass; 'x 16' has 16 times as many elements. Every column has "
    "processes of its own; one measures at a time, the columns of a row by turns in each of {} rounds. A time is the "
    "median of its turns, each the mean of calls that end when the device is done; ratios are medians of those of the "
    "rounds. The best peer is the faster of torch.compile and jax.jit. Products of float32 are computed in float32, "
    "convolutions in TF32, by all. The roofline's share is that of the memory bandwidth or of the peak of the "
    "arithmetic, whichever is larger, which the bytes and operations of flambeau's program need in the measured time. "
    "GiB: the most that tensors had while a step ran, of that row alone.")


def make(libraries: Libraries) -> Callable[[Case], Running]:
    """What makes cases of the table."""
    return libraries.running


def plan(rows: Sequence[str], factors: Sequence[int], columns: Iterable[str]) -> dict[str, list[Case]]:
    """The cases of each column: those of GPT-2 and the larger ones first."""
    order = sorted(cases(rows, factors), key=lambda case: (case[0] not in GPT2_ROWS, case[0] not in _SLOW, -case[1]))
    return {column: [case for case in order if has(column, case)] for column in columns}


def roofline(device: str, seconds: float, moved: float, operations: float, row: str) -> str:
    """The share of the roofline, or nothing for a GPU whose peaks are not known.

    >>> roofline("NVIDIA H100 80GB HBM3", 1e-3, 1.675e9, 0, "chain")
    '50 % of bandwidth'
    """
    peaks = next((peak for name, peak in PEAKS.items() if name in device), None)
    if peaks is None or not moved:
        return ""
    bandwidth, plain, tensor, narrow = peaks
    peak = narrow if row in GPT2_ROWS else tensor if row in CONVOLUTIONS else plain
    share, what = max((moved / bandwidth / seconds, "bandwidth"), (operations / peak / seconds, "arithmetic"))
    return f"{100 * share:.0f} % of {what}"


class Results:
    """What a session has recorded.

    Attributes:
        device: the GPU's name.
        times: (column, case) -> seconds by round.
        made: (column, case) -> what was found when the case was made ready.
        failed: (column, case) -> why it was not measured.
    """

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self.device, self.rounds = "", 0
        self.times: dict[tuple[str, Case], dict[int, float]] = {}
        self.made: dict[tuple[str, Case], dict[str, Any]] = {}
        self.failed: dict[tuple[str, Case], str] = {}
        for each in records:
            if "case" not in each:
                self.device = each.get("device") or self.device
                continue
            key = each["column"], tuple(each["case"])
            if "failed" in each:
                self.failed[key] = each["failed"]
            elif "round" in each:
                self.times.setdefault(key, {})[each["round"]] = each["seconds"]
                self.rounds = max(self.rounds, each["round"] + 1)
            else:
                self.made[key] = each
                self.failed.pop(key, None)

    def seconds(self, column: str, case: Case) -> float | None:
        """The median of a column's turns."""
        found = self.times.get((column, case))
        return statistics.median(found.values()) if found else None

    def ratio(self, case: Case, peer: str, ours: str) -> float | None:
        """The peer's time over ours, the median of the rounds that both have."""
        theirs, own = self.times.get((peer, case), {}), self.times.get((ours, case), {})
        found = [theirs[number] / own[number] for number in theirs if number in own]
        return statistics.median(found) if found else None

    def best_peer(self, case: Case) -> str | None:
        """The faster of the compilers that we are compared with."""
        found = {column: seconds for column in ("torch.compile", "jax.jit")
                 if (seconds := self.seconds(column, case)) is not None}
        return min(found, key=lambda column: found[column]) if found else None

    def cells(self, case: Case) -> markdown.Cells:
        """The cells of a row of the table."""
        row, factor = case
        peer = self.best_peer(case)
        need = self.made.get((COMPILED, case), {})
        shares = [roofline(self.device, seconds, need.get("bytes", 0.0), need.get("operations", 0.0), row)
                  for column in (COMPILED, peer) if column and (seconds := self.seconds(column, case)) is not None]
        ratios = [self.ratio(case, PYTORCH, EAGER), self.ratio(case, peer, COMPILED) if peer else None]
        memory = [self.made.get((column, case), {}).get("memory")
                  for column in (PYTORCH, "torch.compile", EAGER, COMPILED)]
        return [f"{row} x {factor}" if factor != 1 else row,
                *(markdown.duration(self.seconds(column, case)) for column in COLUMNS),
                *("-" if each is None else f"{each:.2f}" for each in ratios), ", ".join(filter(None, shares)),
                ", ".join("-" if each is None else f"{each / 2 ** 30:.3f}" for each in memory)]

    def notes(self) -> list[str]:
        """Failures, what ran eagerly, and results that differ."""
        found = [f"- {case[0]} x {case[1]}, {column}: {why}" for (column, case), why in self.failed.items()]
        found += [f"- {case[0]} x {case[1]}, {column} ran eagerly: {'; '.join(each['eager because'])[:300]}"
                  for (column, case), each in self.made.items() if each.get("eager because")]
        for (column, case), each in self.made.items():
            expected = self.made.get((PYTORCH, case), {}).get("observed")
            if expected is not None and each.get("observed") is not None and not math.isclose(
                    each["observed"], expected, rel_tol=_AGREEMENT, abs_tol=1e-5):
                found.append(f"- {case[0]} x {case[1]}, {column}: {each['observed']:.6g}, not {expected:.6g}")
        return found

    def text(self) -> str:
        """The table as Markdown."""
        order = list(dict.fromkeys(case for _, case in [*self.made, *self.failed]))
        lines = [self.cells(case) for case in order if any((column, case) in self.times for column in COLUMNS)]
        parts = [EXPLANATION.format(self.rounds), markdown.table(HEADS, lines)]
        if self.device:
            parts.insert(0, f"{self.device}.")
        if notes := self.notes():
            parts.append("Failures and remarks:\n\n" + "\n".join(notes))
        return "\n\n".join(parts)


__all__ = ["PEAKS", "Results", "make", "plan", "roofline"]
