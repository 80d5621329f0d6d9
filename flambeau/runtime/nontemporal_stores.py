"""The last cache, and what a kernel has to move that its results go past it.

A processor that writes a line of memory reads it first, lest the rest of it be lost. Where a whole line is written by
instructions made for it (`loops.Operand.store_past`), nothing is read: a third of what an elementwise kernel moves.
Such lines are in no cache afterwards; so it pays only where a kernel touches more than the last cache holds for it
(`stores`). A kernel that waits for its arithmetic anyway is slower so: stores to the caches overlap with it, those
past them do less.
"""

from __future__ import annotations

import os
from functools import cache

from . import nontemporal_threshold

#: bytes that memory reads or writes at once
LINE = 64
#: what an element may cost, beside an addition, where a kernel waits for memory rather than for arithmetic
MOST_WORK = 8
#: bytes of the last cache, where the system does not tell, and the fewest that are believed
USUAL, FEWEST = 32 << 20, 4 << 20
_LISTED = "/sys/devices/system/cpu/cpu0/cache"
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def last() -> int:
    """Bytes that the last cache holds.

    >>> last() >= FEWEST
    True
    """
    try:
        folders = [name for name in os.listdir(_LISTED) if name.startswith("index")]
    except OSError:
        return USUAL
    return max(FEWEST, max(map(_size, folders), default=USUAL))


def _size(folder: str) -> int:
    try:
        with open(f"{_LISTED}/{folder}/size", encoding="ascii") as file:
            told = file.read().strip()
    except OSError:
        return 0
    unit = _UNITS.get(told[-1:])
    number = told if unit is None else told[:-1]
    return int(number) * (unit or 1) if number.isdigit() else 0


def overflow(size: int) -> bool:
    """Whether so many bytes, all touched once, leave so little of themselves in the caches that stores go past them.

    >>> overflow(1000)
    False
    """
    return size >= last() and size >= nontemporal_threshold.pays_from(last())
