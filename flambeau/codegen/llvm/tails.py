"""Tail information: which parts of a vectorized loop and its remainder loop can be left out for known run lengths.

A loop over a run of any length consists of an unrolled vector loop and a remainder loop of single vectors, the last one
masked. If all runs are multiples of the unrolled step, or shorter than a vector, parts of that are unreachable, and
generating and compiling them would cost as much as the parts that are reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...runtime.symbolic_integers import is_exact, is_symbolic, typical

#: largest number of vectors per iteration
MAX_UNROLL = 4
#: elements of a kernel up to which loops are not unrolled: compilation would cost more than unrolling saves
SMALL_KERNEL = 2048


class TailInfo(NamedTuple):
    """What is known about the lengths of the runs of a kernel.

    Attributes:
        max_unroll: the most vectors that an iteration may take; no run has more.
        multiple: all runs are multiples of this number of vectors; 0 if a run may end within a vector.
        single_vector: whether every run fits into one vector.
    """

    max_unroll: int
    multiple: int
    single_vector: bool

    def __str__(self) -> str:
        return f"{self.max_unroll}{self.multiple}{'o' if self.single_vector else ''}"


ANY_LENGTH = TailInfo(MAX_UNROLL, 0, False)


def tail_info(lengths: Iterable[int], lanes: int, elements: int) -> TailInfo:
    """The tail information for runs of these lengths.

    Args:
        lengths: the lengths of the runs, in elements.
        lanes: elements per vector.
        elements: elements that the kernel computes altogether.

    >>> tail_info([64], 8, 64000), tail_info([64], 8, 640)
    (TailInfo(max_unroll=4, multiple=4, single_vector=False), TailInfo(max_unroll=1, multiple=1, single_vector=False))
    >>> tail_info([5], 8, 64000)
    TailInfo(max_unroll=1, multiple=0, single_vector=True)
    """
    runs, elements = list(lengths), typical(elements)
    if any(map(is_symbolic, runs)):
        return ANY_LENGTH
    longest = -(-max(runs, default=0) // lanes)
    max_unroll = next((count for count in (4, 2) if longest >= count and elements > SMALL_KERNEL), 1)
    multiple = next((count for count in (4, 2, 1) if count <= max_unroll and all(
        n and n % (count * lanes) == 0 for n in runs)), 0)
    return TailInfo(max_unroll, multiple, longest == 1 and min(runs) > 0)


def reduced_tail_info(length: int, lanes: int, elements: int) -> TailInfo:
    """The tail information for one run whose elements are reduced: the order of additions depends on how many vectors
    the loop takes at once, which is decided for each extent where estimates are (`symbolic_integers.estimate`).

    >>> reduced_tail_info(64, 8, 64000) == tail_info([64], 8, 64000)
    True
    """
    if not is_exact(length):
        unrolls = is_exact(elements) and length > lanes and elements > SMALL_KERNEL
        return tail_info([length], lanes, elements if not is_exact(elements) else SMALL_KERNEL + unrolls)
    if elements > SMALL_KERNEL:
        for count in (4, 2):
            if -(-length // lanes) >= count:
                return TailInfo(count, 0, False)
    return TailInfo(1, 0, False)


def block_lengths(extent: int, block: int) -> tuple[int, int]:
    """The lengths of the first and the last of the blocks of at most `block` elements that cover an extent."""
    return min(extent, block), extent - (extent - 1) // block * block if extent else 0
