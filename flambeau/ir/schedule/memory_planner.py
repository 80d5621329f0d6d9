"""Places for what needs memory for a while: things whose times do not meet may share bytes.

All times are known beforehand, so places are not given in the order of time but of size: what is large finds room
first, and what is small fits in between. That comes close to the most that is needed at any one time, while first come
first served inputs gaps that nothing large fits into.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

from ...runtime.launch import ALIGNMENT


class LiveRange(NamedTuple):
    """How long something needs memory, and how much: the first step, the last one, bytes."""

    first: int
    last: int
    size: int


def assign_offsets(live_ranges: Sequence[LiveRange]) -> tuple[list[int], int]:
    """Where each begins, aligned, and the bytes for all of them: the smallest gap that is large enough is taken.

    >>> assign_offsets([LiveRange(0, 1, 64), LiveRange(1, 2, 128), LiveRange(2, 3, 64), LiveRange(3, 4, 128)])
    ([128, 0, 128, 0], 192)
    """
    starts, top = [0] * len(live_ranges), 0
    taken: list[tuple[int, int, int, int]] = []  # start, end, first and last step, by their starts
    for i in sorted(range(len(live_ranges)), key=lambda i: (-live_ranges[i].size, live_ranges[i].first)):
        first, last, size = live_ranges[i]
        size = -(-max(1, size) // ALIGNMENT) * ALIGNMENT
        best, least, end = -1, -1, 0
        for start, its_end, its_first, its_last in taken:
            if its_first <= last and first <= its_last:
                gap = start - end
                if gap >= size and (best < 0 or gap < least):
                    best, least = end, gap
                end = max(end, its_end)
        starts[i] = end if best < 0 else best
        insort(taken, (starts[i], starts[i] + size, first, last))
        top = max(top, starts[i] + size)
    return starts, top


__all__ = ["LiveRange", "assign_offsets"]
