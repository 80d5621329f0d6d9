"""Provenance: the source lines of the IR values of a trace, and the user's names of its inputs.

`provenance_tracer.py` records it; `explain` and the debug output print it.
"""

from __future__ import annotations

import linecache
import os
import re
from typing import NamedTuple

from ...ir.graph.value import Value
from ...ir.kernels.cost_model import computed_values
from ...ir.kernels.pointwise import Kernel
from ...ir.schedule.scheduler import Schedule

#: the largest number of lines that are listed for a kernel
LINES = 4
#: the suffix of a line, by the passes (False: forward, True: backward) in which it was traced
_PASS_SUFFIXES = {(False,): "", (True,): "  (backward)", (False, True): "  (forward and backward)"}


class Place(NamedTuple):
    """A line of the user's program; `backward`: a value of the backward pass of an operator on that line."""

    file: str
    number: int
    backward: bool = False

    def __str__(self) -> str:
        return f"{shortened(self.file)}:{self.number}"

    @property
    def text(self) -> str:
        """The location and the source text of the line."""
        return f"{self}  {linecache.getline(self.file, self.number).strip()}".rstrip()


def shortened(path: str) -> str:
    """Return a path relative to the working directory, if it is below it."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # on another drive
        return path
    return path if relative.startswith("..") else relative


def place_of(text: str) -> Place | None:
    """Return the location at the end of a text, `... (file:line)` or `file:line`."""
    match = re.search(r"([^()]+):(\d+)\)?$", text)
    return None if match is None else Place(match[1], int(match[2]))


class Provenance:
    """Source lines and names of the values of a trace.

    Attributes:
        places: by number of an IR value, the line that first computed it.
        names: names of inputs, and of those views of inputs that are the user's tensors.
        labels: names of tensors, by identity.
    """

    def __init__(self, places: dict[int, Place], names: dict[Value, str], labels: dict[int, str]) -> None:
        self.places, self.names, self.labels = places, names, labels

    def _place(self, schedule: Schedule, value: Value) -> Place | None:
        """Return the line of a value; of a value that a rewrite made, the line of the original or of an operand."""
        pending = [value]
        while pending:
            value = pending.pop()
            if value.number in self.places:
                return self.places[value.number]
            pending += [schedule.rewritten[value]] if value in schedule.rewritten else reversed(value.args)
        return None

    def lines(self, schedule: Schedule, kernel: Kernel) -> list[str]:
        """Return the lines that a kernel comes from, in execution order."""
        passes: dict[tuple[str, int], dict[bool, None]] = {}
        for value in computed_values(kernel):
            place = self._place(schedule, value)
            if place is not None:
                passes.setdefault(place[:2], {})[place.backward] = None
        texts = [Place(*line).text + _PASS_SUFFIXES[tuple(sorted(backward))] for line, backward in passes.items()]
        return texts if len(texts) <= LINES else [*texts[:LINES - 1], f"{len(texts) - LINES + 1} more lines"]


__all__ = ["LINES", "Place", "Provenance", "place_of", "shortened"]
