"""Comparison of a program's two runs: the largest difference of losses, and of printed numbers."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass

from .catalogue import Program
from .running import Run

TOLERANCE = 1e-4
#: of printed numbers, which are rounded: a digit may flip
PRINTED = 2e-3
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b)")


def difference(a: float, b: float) -> float:
    """How far `a` is from `b`, relative to the larger of 1 and |b|.

    >>> difference(2.0, 2.2), difference(0.0, 1e-5), difference(float("nan"), float("nan"))
    (0.09090909090909098, 1e-05, 0.0)
    """
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return 0.0 if a == b or (math.isnan(a) and math.isnan(b)) else math.inf
    return abs(a - b) / max(1.0, abs(b))


@dataclass(frozen=True)
class Comparison:
    """How a program does under both libraries."""

    program: Program
    flambeau: Run
    pytorch: Run

    @property
    def largest(self) -> float:
        """The largest difference of two losses."""
        return max(map(difference, self.flambeau.losses, self.pytorch.losses), default=0.0)

    @property
    def complaint(self) -> str | None:
        """What is not as under PyTorch, or None."""
        mine, theirs = self.flambeau, self.pytorch
        if theirs.error:
            return f"fails under PyTorch, too: {theirs.error}"
        if mine.error:
            return mine.error
        if len(mine.losses) != len(theirs.losses):
            return f"{len(mine.losses)} losses instead of {len(theirs.losses)}"
        if not theirs.losses and not self.program.prints:
            return "no losses"
        for step, (a, b) in enumerate(zip(mine.losses, theirs.losses, strict=True)):
            if not difference(a, b) <= TOLERANCE:
                return f"loss {step} is {a} instead of {b}"
        return self._printed() if self.program.prints else None

    def _printed(self) -> str | None:
        pairs = itertools.zip_longest(*(self._lines(run) for run in (self.flambeau, self.pytorch)), fillvalue="")
        for a, b in pairs:
            close = all(difference(float(x), float(y)) <= PRINTED for x, y in
                        zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=False))
            if not close or _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
                return f"prints {a!r} instead of {b!r}"
        return None

    def _lines(self, run: Run) -> list[str]:
        lines = run.printed.splitlines()
        if self.program.masked:
            lines = [re.sub(self.program.masked, "", line) for line in lines]
        return lines


def table(comparisons: list[Comparison]) -> str:
    """The comparisons in Markdown: one line a program."""
    rows = ["| program | losses | largest difference | PyTorch, s | flambeau, s | |",
            "| --- | ---: | ---: | ---: | ---: | --- |"]
    for c in comparisons:
        said = c.complaint
        verdict = "agrees" if said is None else said[:160].replace("|", "\\|")
        counted = str(len(c.flambeau.losses)) if c.flambeau.losses else "output"
        rows.append(f"| {c.program.name} | {counted} | {c.largest:.1e} | {c.pytorch.seconds:.1f} "
                    f"| {c.flambeau.seconds:.1f} | {verdict} |")
    agree = sum(c.complaint is None for c in comparisons)
    return "\n".join([*rows, "", f"{agree} of {len(comparisons)} programs agree to {TOLERANCE:g}."])
