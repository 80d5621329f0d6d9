"""Comparison of a program's two runs: the largest difference of losses, and of printed numbers.

Where losses differ by more than the tolerance, PyTorch itself runs again with other roundings: a program that doubles
differences at every step ends with other losses under PyTorch, too. Flambeau's losses may differ by as much as those of
PyTorch's own runs do, up to `AHEAD` steps later, and not by more: a run of PyTorch is changed once, by a unit in the
last place, while every operator of flambeau may round otherwise, so its differences are a few steps older.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .catalogue import Program
from .running import Run

TOLERANCE = 1e-4
#: steps by which differences may be larger than PyTorch's own
AHEAD = 3
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


def largest_so_far(losses: Sequence[float], others: Sequence[float]) -> list[float]:
    """The largest difference up to each step.

    >>> largest_so_far([1.0, 2.5, 2.0], [1.0, 2.0, 2.0])
    [0.0, 0.25, 0.25]
    """
    return list(itertools.accumulate(map(difference, losses, others), max))


@dataclass(frozen=True)
class Comparison:
    """How a program does under both libraries.

    Args:
        program: what ran.
        flambeau: its run under flambeau.
        pytorch: its run under PyTorch.
        sensitivity: runs under PyTorch with other roundings; none were needed where the losses agree.
    """

    program: Program
    flambeau: Run
    pytorch: Run
    sensitivity: tuple[Run, ...] = ()

    @property
    def largest(self) -> float:
        """The largest difference of two losses."""
        return max(map(difference, self.flambeau.losses, self.pytorch.losses), default=0.0)

    @property
    def pytorchs_own(self) -> float:
        """The largest difference of PyTorch's own losses under other roundings."""
        return max(self._allowed(), default=0.0)

    @property
    def losses_differ(self) -> bool:
        """Whether both ran to the end, and a loss differs by more than the tolerance."""
        mine, theirs = self.flambeau, self.pytorch
        return not (mine.error or theirs.error) and len(mine.losses) == len(theirs.losses) and (
            not self.largest <= TOLERANCE)

    def _allowed(self) -> list[float]:
        """The largest difference of PyTorch's own losses, up to `AHEAD` steps after each step."""
        differences = [largest_so_far(run.losses, self.pytorch.losses) for run in self.sensitivity]
        largest = [max(of_step) for of_step in zip(*differences, strict=True)]
        return [largest[min(step + AHEAD, len(largest) - 1)] for step in range(len(largest))]

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
        allowed = itertools.chain(self._allowed(), itertools.repeat(0.0))
        for step, (a, b, own) in enumerate(zip(mine.losses, theirs.losses, allowed, strict=False)):
            if not difference(a, b) <= max(TOLERANCE, own):
                return f"loss {step} is {a} instead of {b}" + (
                    f"; PyTorch's own differ by {own:.1e}" if self.sensitivity else "")
        # what is printed depends on the losses
        return self._printed() if self.program.prints and not self.losses_differ else None

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
        if said is None and c.losses_differ:
            verdict = f"differs by no more than PyTorch from itself ({c.pytorchs_own:.1e})"
        counted = str(len(c.flambeau.losses)) if c.flambeau.losses else "output"
        rows.append(f"| {c.program.name} | {counted} | {c.largest:.1e} | {c.pytorch.seconds:.1f} "
                    f"| {c.flambeau.seconds:.1f} | {verdict} |")
    fine = [c for c in comparisons if c.complaint is None]
    chaotic = sum(c.losses_differ for c in fine)
    said = f"{len(fine) - chaotic} of {len(comparisons)} programs agree to {TOLERANCE:g}"
    if chaotic:
        said += f", {chaotic} differ by no more than PyTorch from itself"
    return "\n".join([*rows, "", f"{said}."])
