"""How runs of elements end, where their lengths are known: what the code for them can do without.

Code for runs of any length takes several vectors a step, then single ones, the last of them masked. If all runs are of
so many whole vectors, or shorter than a vector, a part of that is never reached, and writing and compiling it costs
as much as the part that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: vectors that a step takes, at most
MOST = 4
#: elements of a whole kernel up to which a step takes one vector: more code would save less than it costs
FEW = 2048


class Ending(NamedTuple):
    """What is known of the lengths of runs.

    Attributes:
        most: vectors that a step may take; more are never there.
        multiple: of so many vectors all runs are; 0 where one may end within a vector.
        once: whether no run has more than one vector, or part of one.
    """

    most: int
    multiple: int
    once: bool

    def __str__(self) -> str:
        return f"{self.most}{self.multiple}{'o' if self.once else ''}"


ANY = Ending(MOST, 0, False)


def ending(lengths: Iterable[int], lanes: int, elements: int) -> Ending:
    """What holds for runs of these lengths, in vectors of so many lanes, in a kernel of so many elements.

    >>> ending([64], 8, 64000), ending([64], 8, 640)
    (Ending(most=4, multiple=4, once=False), Ending(most=1, multiple=1, once=False))
    >>> ending([5], 8, 64000)
    Ending(most=1, multiple=0, once=True)
    """
    found = list(lengths)
    longest = -(-max(found, default=0) // lanes)
    most = next((some for some in (4, 2) if longest >= some and elements > FEW), 1)
    multiple = next((some for some in (4, 2, 1) if some <= most and all(
        n and n % (some * lanes) == 0 for n in found)), 0)
    return Ending(most, multiple, longest == 1 and min(found) > 0)


def lengths(extent: int, size: int) -> tuple[int, int]:
    """Those of the blocks of at most `size` elements that an extent is cut into."""
    return min(extent, size), extent - (extent - 1) // size * size if extent else 0
