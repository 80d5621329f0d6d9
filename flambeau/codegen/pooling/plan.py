"""Pooling windows along one dimension, and the plan layout of pooling kernels."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from ...runtime.symbolic_integers import greater, is_symbolic, largest, lesser
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
    def number(self) -> int:
        """The number of windows."""
        return len(self.starts)

    @property
    def longest(self) -> int:
        """The most elements of a window."""
        return max(self.counts, default=0)

    @property
    def uniform(self) -> tuple[int, int] | None:
        """The first and the end of the windows that are alike and evenly apart; None where there are none."""
        count = self.longest
        full = [i for i, n in enumerate(self.counts) if n == count]
        if len(full) < 2 or full[-1] - full[0] + 1 != len(full) or (self.step != 1 and count > 1):
            return None
        first, end = full[0], full[-1] + 1
        stride = self.starts[first + 1] - self.starts[first]
        regular = all(self.starts[i] == self.starts[first] + (i - first) * stride
                      and self.divisors[i] == self.divisors[first] for i in full)
        return (first, end) if regular else None

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


class _Described:
    """Windows that follow from a few numbers; if these are symbolic, the lists are as long as for the largest one."""

    @property
    def starts(self) -> tuple[int, ...]:
        """As in `Windows`."""
        return _lists(self).starts

    @property
    def counts(self) -> tuple[int, ...]:
        """As in `Windows`."""
        return _lists(self).counts

    @property
    def divisors(self) -> tuple[int, ...]:
        """As in `Windows`."""
        return _lists(self).divisors

    @property
    def lows(self) -> tuple[int, ...]:
        """As in `Windows`."""
        return _lists(self).lows

    @property
    def ends(self) -> tuple[int, ...]:
        """As in `Windows`."""
        lists = _lists(self)
        if not self._is_symbolic:  # type: ignore[attr-defined]
            return lists.ends
        return tuple(accumulate((start + greater(0, (n - 1) * lists.step + 1)
                                 for start, n in zip(lists.starts, lists.counts, strict=True)), greater))


class _Regular(NamedTuple):
    length: int
    number: int
    kernel: int
    stride: int
    padding: int
    step: int
    padded: bool


class RegularWindows(_Described, _Regular):
    """Windows of `kernel` elements, one every `stride`.

    Attributes:
        length: the number of elements.
        number: of windows.
        kernel, stride, padding: elements of a window, between windows, and before the first element.
        step: the distance of a window's elements (dilation).
        padded: whether divisors include padding (count_include_pad).

    >>> RegularWindows(5, 3, 3, 2, 1, 1, True).starts
    (0, 1, 3)
    """

    __slots__ = ()

    @property
    def _is_symbolic(self) -> bool:
        return is_symbolic(self.length) or is_symbolic(self.number)

    @property
    def longest(self) -> int:
        """The most elements of a window, at least."""
        return self.kernel if self._is_symbolic else _lists(self).longest

    @property
    def uniform(self) -> tuple[int, int] | None:
        """As in `Windows`."""
        if not self._is_symbolic:
            return _lists(self).uniform
        first = -(-self.padding // self.stride)
        end = (self.length + self.padding - self.step * (self.kernel - 1) - 1) // self.stride + 1
        return (first, end) if end - first > 1 and (self.step == 1 or self.kernel == 1) else None

    def max_extent(self, count: int) -> int:
        """The maximum input extent of `count` consecutive windows, or more."""
        if is_symbolic(count) or self._is_symbolic:
            return (count - 1) * self.stride + (self.kernel - 1) * self.step + 1
        return _lists(self).max_extent(count)

    def lists(self) -> Windows:
        """All windows."""
        starts, counts, divisors = [], [], []
        for i in range(largest(self.number)):
            first = i * self.stride - self.padding
            skipped = -(first // self.step) if first < 0 else 0
            start = first + skipped * self.step
            count = greater(0, lesser(self.kernel - skipped, -(-(self.length - start) // self.step)))
            starts.append(start)
            counts.append(count)
            divisors.append(greater(1, lesser(first + self.kernel, self.length + self.padding) - first) if self.padded
                            else greater(1, count))
        return Windows(tuple(starts), tuple(counts), self.step, tuple(divisors))


class _Adaptive(NamedTuple):
    length: int
    number: int


class AdaptiveWindows(_Described, _Adaptive):
    """Adaptive pooling's windows: from floor(i * length / number) to ceil((i + 1) * length / number).

    Attributes:
        length: the number of elements.
        number: of windows.

    >>> AdaptiveWindows(5, 2).counts
    (3, 3)
    """

    __slots__ = ()
    step = 1

    @property
    def _is_symbolic(self) -> bool:
        return is_symbolic(self.length) or is_symbolic(self.number)

    @property
    def longest(self) -> int:
        """The most elements of a window, or one more."""
        return -(-self.length // self.number) + 1 if self._is_symbolic else _lists(self).longest

    @property
    def uniform(self) -> tuple[int, int] | None:
        """As in `Windows`."""
        return None if self._is_symbolic else _lists(self).uniform

    def max_extent(self, count: int) -> int:
        """The maximum input extent of `count` consecutive windows, or more."""
        if is_symbolic(count) or self._is_symbolic:
            return lesser(-(-count * self.length // self.number) + 1, self.length)
        return _lists(self).max_extent(count)

    def lists(self) -> Windows:
        """All windows."""
        starts = [i * self.length // self.number for i in range(self.number)]
        counts = [-((i + 1) * -self.length // self.number) - start for i, start in enumerate(starts)]
        return Windows(tuple(starts), tuple(counts), 1, tuple(counts))


AnyWindows = Windows | RegularWindows | AdaptiveWindows


@lru_cache(256)
def _lists(windows: Any) -> Windows:
    return windows.lists()


def regular(length: int, windows: int, kernel: int, stride: int, padding: int, dilation: int = 1,
            padded: bool = True) -> Windows:
    """Windows of `kernel` elements, one every `stride`.

    Args:
        padded: whether divisors include padding (count_include_pad).

    >>> regular(5, 3, 3, 2, 1)
    Windows(starts=(0, 1, 3), counts=(2, 3, 2), step=1, divisors=(3, 3, 3))
    """
    return RegularWindows(length, windows, kernel, stride, padding, dilation, padded).lists()


def adaptive(length: int, windows: int) -> Windows:
    """Adaptive pooling's windows: from ⌊i · length / windows⌋ to ⌈(i + 1) · length / windows⌉.

    >>> adaptive(5, 2).counts
    (3, 3)
    """
    return AdaptiveWindows(length, windows).lists()


def transposed(windows: AnyWindows, length: int) -> Windows:
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
