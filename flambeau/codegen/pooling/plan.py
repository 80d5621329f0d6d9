"""Windows along one dimension, and the words of a pooling's plan."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from ..convolution.plan import Words


class Windows(NamedTuple):
    """Which elements of a dimension each window holds.

    Attributes:
        starts: of each window, its first element.
        counts: how many elements it has.
        step: from one of its elements to the next.
        divisors: what it counts for in a mean.
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]
    step: int
    divisors: tuple[int, ...]

    @property
    def lows(self) -> tuple[int, ...]:
        """Of each window, the first element that it or one behind it holds."""
        return tuple(accumulate(reversed(self.starts), min))[::-1]

    @property
    def ends(self) -> tuple[int, ...]:
        """Of each window, the end of what it and those before it hold."""
        return tuple(accumulate((start + max(0, (n - 1) * self.step + 1)
                                 for start, n in zip(self.starts, self.counts, strict=True)), max))

    def seen(self, count: int) -> int:
        """From how many neighbouring elements `count` windows that follow each other take theirs, at most."""
        lows, ends = self.lows, self.ends
        return max((ends[min(i + count, len(ends)) - 1] - lows[i] for i in range(0, len(ends), count)), default=0)


def regular(length: int, windows: int, kernel: int, stride: int, padding: int, dilation: int = 1,
            padded: bool = True) -> Windows:
    """Windows of `kernel` elements, one every `stride`.

    Args:
        padded: whether means count the margin.

    >>> regular(5, 3, 3, 2, 1)
    Windows(starts=(0, 1, 3), counts=(2, 3, 2), step=1, divisors=(3, 3, 3))
    """
    starts, counts, divisors = [], [], []
    for i in range(windows):
        first = i * stride - padding
        skipped = -(first // dilation) if first < 0 else 0
        start = first + skipped * dilation
        count = max(0, min(kernel - skipped, -(-(length - start) // dilation)))
        starts.append(start)
        counts.append(count)
        divisors.append(max(1, min(first + kernel, length + padding) - first) if padded else max(1, count))
    return Windows(tuple(starts), tuple(counts), dilation, tuple(divisors))


def adaptive(length: int, windows: int) -> Windows:
    """Windows that cover a dimension evenly: from ⌊i · length / windows⌋ to ⌈(i + 1) · length / windows⌉.

    >>> adaptive(5, 2).counts
    (3, 3)
    """
    starts = [i * length // windows for i in range(windows)]
    counts = [-((i + 1) * -length // windows) - start for i, start in enumerate(starts)]
    return Windows(tuple(starts), tuple(counts), 1, tuple(counts))


def turned_round(windows: Windows, length: int) -> Windows:
    """Of each of `length` elements, the windows that hold it; divisors are still the windows'.

    >>> turned_round(regular(4, 2, 2, 2, 0), 4)
    Windows(starts=(0, 0, 1, 1), counts=(1, 1, 1, 1), step=1, divisors=(2, 2))
    """
    starts, counts = [len(windows.starts)] * length, [0] * length
    for i, (start, count) in reversed(list(enumerate(zip(windows.starts, windows.counts, strict=True)))):
        for element in range(start, start + count):
            starts[element] = i
            counts[element] += 1
    for element in reversed(range(length - 1)):
        if not counts[element]:  # in a gap: nothing, before what the next element has
            starts[element] = starts[element + 1]
    return Windows(tuple(starts), tuple(counts), windows.step, windows.divisors)


#: positions and blocks of them; channels and blocks of them; pointers, and places in scratch memory; addresses of code;
#: the input's spatial sizes, and distances in it or its copy; distances in the outputs, and in their buffer; where
#: lists of windows begin, and tables for `fill`, of a whole block of channels and of the last
POOLING = Words("""
    batch grid.dhw block.ndhw blocks.dhw channels channels.block channels.blocks
    source scratch slots slots.at slot.bytes fill flush
    size.dhw source.ndhw source.c from.ndhw step.dhw
    values.ndhw values.c indices.ndhw indices.c buffer.ndhw buffer.at indices.at flat
    starts.dhw counts.dhw lows.dhw ends.dhw divisors.dhw override about.at about.last.at
""")
