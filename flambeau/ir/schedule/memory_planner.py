"""Memory planner: offsets in one arena for buffers with known live ranges.

Buffers whose live ranges do not overlap may share bytes. Offsets are assigned by decreasing size (greedy by size,
best fit), which comes close to the peak of live bytes. Assigning in the order of time leaves gaps that no large buffer
fits into: the arena of a CNN took 1.5 times as much.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...runtime.launch import ALIGNMENT
from ...runtime.symbolic_integers import greater, is_symbolic, typical


class LiveRange(NamedTuple):
    """A buffer's first and last step, and its size in bytes."""

    first: int
    last: int
    size: int


def assign_offsets(live_ranges: Sequence[LiveRange]) -> tuple[list[int], int]:
    """The aligned offset of each buffer, and the size of the arena; the smallest gap that fits is taken.

    Symbolic sizes are laid out for typical ones; then each buffer moves behind those that are below it at that time.

    >>> assign_offsets([LiveRange(0, 1, 64), LiveRange(1, 2, 128), LiveRange(2, 3, 64), LiveRange(3, 4, 128)])
    ([128, 0, 128, 0], 192)
    """
    if not any(is_symbolic(each.size) for each in live_ranges):
        return _assigned(live_ranges)
    offsets: list[Any] = [0] * len(live_ranges)
    arena_size: Any = 0
    below: list[int] = []
    chosen, _ = _assigned([each._replace(size=typical(each.size)) for each in live_ranges])
    for i in sorted(range(len(live_ranges)), key=chosen.__getitem__):
        first, last, size = live_ranges[i]
        for j in below:
            if live_ranges[j].first <= last and first <= live_ranges[j].last:
                offsets[i] = greater(offsets[i], offsets[j] + _aligned(live_ranges[j].size))
        below.append(i)
        arena_size = greater(arena_size, offsets[i] + _aligned(size))
    return offsets, arena_size


def _aligned(size: int) -> int:
    return -(-greater(1, size) // ALIGNMENT) * ALIGNMENT


def _assigned(live_ranges: Sequence[LiveRange]) -> tuple[list[int], int]:
    offsets, arena_size = [0] * len(live_ranges), 0
    placed: list[tuple[int, int, int, int]] = []  # (start, end, first step, last step), sorted
    for i in sorted(range(len(live_ranges)), key=lambda i: (-live_ranges[i].size, live_ranges[i].first)):
        first, last, size = live_ranges[i]
        size = _aligned(size)
        best_gap_start, best_gap, end = -1, -1, 0
        for start, other_end, other_first, other_last in placed:
            if other_first <= last and first <= other_last:
                gap = start - end
                if gap >= size and (best_gap_start < 0 or gap < best_gap):
                    best_gap_start, best_gap = end, gap
                end = max(end, other_end)
        offsets[i] = end if best_gap_start < 0 else best_gap_start
        insort(placed, (offsets[i], offsets[i] + size, first, last))
        arena_size = max(arena_size, offsets[i] + size)
    return offsets, arena_size


__all__ = ["LiveRange", "assign_offsets"]
