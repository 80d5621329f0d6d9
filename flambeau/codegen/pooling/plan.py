"""Pooling windows along one dimension, and the plan layout of pooling kernels."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from ..convolution.plan import PlanLayout


class Windows(NamedTuple):
    """The elements of one dimension in each window.

    Attributes:
        starts: each window's first element.
        counts: each window's number of elements.
        step: the distance of a window's elements (dilation).
        divisors: each window's divisor in a mean.
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]
    step: int
    divisors: tuple[int, ...]

    @property
    def lows(self) -> tuple[int, ...]:
        """For each window, the first element of it and of all following windows."""
        return tuple(accumulate(reversed(self.starts), min))[::-1]

    @property
    def ends(self) -> tuple[int, ...]:
        """For each window, the end of it and of all preceding windows."""
        return tuple(accumulate((start + max(0, (n - 1) * self.step + 1)
                                 for start, n in zip(self.starts, self.counts, strict=True)), max))

    def max_extent(self, count: int) -> int:
        """The maximum input extent of `count` consecutive windows."""
        lows, ends = self.lows, self.ends
        return max((ends[min(i + count, len(ends)) - 1] - lows[i] for i in range(0, len(ends), count)), default=0)


def regular(length: int, windows: int, kernel: int, stride: int, padding: int, dilation: int = 1,
            padded: bool = True) -> Windows:
    """Windows of `kernel` elements, one every `stride`.

    Args:
        padded: whether divisors include padding (count_include_pad).

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
    """Adaptive pooling's windows: from ⌊i · length / windows⌋ to ⌈(i + 1) · length / windows⌉.

    >>> adaptive(5, 2).counts
    (3, 3)
    """
    starts = [i * length // windows for i in range(windows)]
    counts = [-((i + 1) * -length // windows) - start for i, start in enumerate(starts)]
    return Windows(tuple(starts), tuple(counts), 1, tuple(counts))


def transposed(windows: Windows, length: int) -> Windows:
    """For each of `length` elements, the windows that contain it; divisors remain the windows'.

    >>> transposed(regular(4, 2, 2, 2, 0), 4)
    Windows(starts=(0, 0, 1, 1), counts=(1, 1, 1, 1), step=1, divisors=(2, 2))
    """
    starts, counts = [len(windows.starts)] * length, [0] * length
    for i, (start, count) in reversed(list(enumerate(zip(windows.starts, windows.counts, strict=True)))):
        for element in range(start, start + count):
            starts[element] = i
            counts[element] += 1
    for element in reversed(range(length - 1)):
        if not counts[element]:  # in no window: an empty range where the next element's begins
            starts[element] = starts[element + 1]
    return Windows(tuple(starts), tuple(counts), windows.step, windows.divisors)


#: positions and blocks; channels and blocks; pointer indices and scratch offsets; code addresses; the input's spatial
#: sizes and strides, and those of its copy; strides of the outputs and of their buffer; starts of the lists of windows,
#: and of `fill`'s fields for a full block of channels and for the last one
POOLING = PlanLayout("""
    batch grid.dhw block.ndhw blocks.dhw channels channels.block channels.blocks
    source scratch slots slots.at slot.bytes fill flush
    size.dhw source.ndhw source.c from.ndhw step.dhw
    values.ndhw values.c indices.ndhw indices.c buffer.ndhw buffer.at indices.at flat
    starts.dhw counts.dhw lows.dhw ends.dhw divisors.dhw override fill_fields.at fill_fields.last.at
""")
