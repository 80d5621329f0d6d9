"""Provenance: the user's source lines that made the values of a trace, and the names that the user has for its arrays.

`tracing.provenance_tracer` records it.
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

#: lines that are told of one kernel
LINES = 4
#: what is said of a line that a kernel is the forward or the backward of
_WAYS = {(False,): "", (True,): "  (backward)", (False, True): "  (forward and backward)"}


class Place(NamedTuple):
    """A line of the user's program; `backward` where what it computed was differentiated."""

    file: str
    number: int
    backward: bool = False

    def __str__(self) -> str:
        return f"{shortened(self.file)}:{self.number}"

    @property
    def said(self) -> str:
        """The line, with what it says."""
        return f"{self}  {linecache.getline(self.file, self.number).strip()}".rstrip()


def shortened(path: str) -> str:
    """A file's name as seen from the working directory, if it is in there."""
    try:
        found = os.path.relpath(path)
    except ValueError:  # on another drive
        return path
    return path if found.startswith("..") else found


def place_of(where: str) -> Place | None:
    """The line that a text ends with, `... (file:line)` or `file:line`."""
    found = re.search(r"([^()]+):(\d+)\)?$", where)
    return None if found is None else Place(found[1], int(found[2]))


class Provenance:
    """What is known of a trace's values.

    Attributes:
        places: the line that first asked for a value, by its number.
        names: what leaves are called, and views of them that are what the user sees.
        labels: what tensors are called, by identity.
    """

    def __init__(self, places: dict[int, Place], names: dict[Value, str], labels: dict[int, str]) -> None:
        self.places, self.names, self.labels = places, names, labels

    def _place(self, schedule: Schedule, value: Value) -> Place | None:
        """The line of a value; of one that only the schedule made, the line of what it stands for or is computed
        from."""
        pending = [value]
        while pending:
            value = pending.pop()
            if value.number in self.places:
                return self.places[value.number]
            pending += [schedule.rewritten[value]] if value in schedule.rewritten else reversed(value.args)
        return None

    def lines(self, schedule: Schedule, kernel: Kernel) -> list[str]:
        """The lines that a kernel comes from, in the order in which they ran."""
        ways: dict[tuple[str, int], dict[bool, None]] = {}
        for value in computed_values(kernel):
            place = self._place(schedule, value)
            if place is not None:
                ways.setdefault(place[:2], {})[place.backward] = None
        told = [Place(*line).said + _WAYS[tuple(sorted(found))] for line, found in ways.items()]
        return told if len(told) <= LINES else [*told[:LINES - 1], f"{len(told) - LINES + 1} more lines"]


__all__ = ["LINES", "Place", "Provenance", "place_of", "shortened"]
