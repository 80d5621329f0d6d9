"""Correlations: one description of a convolution and of its transpose, as sums over kernel taps.

A *correlation* sums, at every target position, products of source elements with weights:

    target[n, start + q · target_step, o] = Σ over taps, c of source[n, q · source_step + offset, c] · weight[tap, c, o]

A convolution is one such sum, whose positions step through the source by the stride. Its transpose has several phases:
a *phase* is the set of positions that are congruent modulo the stride; they share their taps, and step through the
source by 1. There are always three spatial dimensions; missing leading ones have extent 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

Triple = tuple[int, int, int]


def triple(values: Sequence[int], missing: int) -> Triple:
    """Three values, `missing` for each missing leading dimension.

    >>> triple((3, 5), 1)
    (1, 3, 5)
    """
    first, second, third = (missing,) * (3 - len(values)) + tuple(values)
    return first, second, third


class Taps(NamedTuple):
    """Positions along one dimension that share taps: the first, their number, and the taps' (kernel index, offset)."""

    start: int
    positions: int
    taps: tuple[tuple[int, int], ...]


class Phase(NamedTuple):
    """Target positions that share taps.

    Attributes:
        start: the first position.
        counts: number of positions along each dimension.
        offsets: each tap's offset from a position's index in the source, ascending along each dimension.
        kernel: each tap's flat index in the kernel.
        along: number of taps along each dimension.
    """

    start: Triple
    counts: Triple
    offsets: tuple[Triple, ...]
    kernel: tuple[int, ...]
    along: Triple


class Correlation(NamedTuple):
    """Sums over taps; `in_channels` and `out_channels` are per group.

    Attributes:
        source_sizes, target_sizes, kernel: spatial sizes.
        min_offset, max_offset: extremes of the taps' offsets along each dimension, over all phases.
    """

    batch: int
    groups: int
    in_channels: int
    out_channels: int
    source_sizes: Triple
    target_sizes: Triple
    kernel: Triple
    source_step: Triple
    target_step: Triple
    phases: tuple[Phase, ...]
    min_offset: Triple
    max_offset: Triple

    @property
    def grid(self) -> Triple:
        """Positions along each dimension, of the largest phase."""
        a, b, c = (max(phase.counts[i] for phase in self.phases) for i in range(3))
        return a, b, c

    @property
    def inside(self) -> bool:
        """Whether all taps of all positions are within the source."""
        return all(low >= 0 and (phase.counts[i] - 1) * self.source_step[i] + high < self.source_sizes[i]
                   for phase in self.phases
                   for i, (low, high) in enumerate(zip(self.min_offset, self.max_offset, strict=True)))

    @property
    def multiplications(self) -> int:
        """The number of multiplications."""
        return self.batch * self.groups * self.in_channels * self.out_channels * sum(
            prod(phase.counts) * len(phase.kernel) for phase in self.phases)


def forward(batch: int, groups: int, in_channels: int, out_channels: int, extents: Triple, positions: Triple,
            kernel: Triple, stride: Triple, padding: Triple, dilation: Triple) -> Correlation:
    """The convolution, from images of spatial sizes `extents` to `positions`.

    >>> forward(1, 1, 1, 1, (1, 1, 5), (1, 1, 5), (1, 1, 3), (1, 1, 1), (0, 0, 1), (1, 1, 1)).phases[0].offsets
    ((0, 0, -1), (0, 0, 0), (0, 0, 1))
    """
    along = [[Taps(0, count, tuple((k, k * d - p) for k in range(size)))]
             for count, size, p, d in zip(positions, kernel, padding, dilation, strict=True)]
    return _correlation(batch, groups, in_channels, out_channels, extents, positions, kernel, stride, (1, 1, 1), along)


def transposed(batch: int, groups: int, in_channels: int, out_channels: int, positions: Triple, extents: Triple,
               kernel: Triple, stride: Triple, padding: Triple, dilation: Triple) -> Correlation:
    """The transposed convolution, from `positions` to images of spatial sizes `extents`.

    Its source is the convolution's output: `in_channels` are the convolution's output channels per group.
    """
    along = []
    for extent, size, s, p, d in zip(extents, kernel, stride, padding, dilation, strict=True):
        phases = []
        for start in range(min(s, extent)):
            taps = sorted(((start + p - k * d) // s, k) for k in range(size) if (start + p - k * d) % s == 0)
            phases.append(Taps(start, -(-(extent - start) // s), tuple((k, offset) for offset, k in taps)))
        along.append(phases)
    return _correlation(batch, groups, in_channels, out_channels, positions, extents, kernel, (1, 1, 1), stride, along)


def _correlation(batch: int, groups: int, in_channels: int, out_channels: int, source_sizes: Triple,
                 target_sizes: Triple, kernel: Triple, source_step: Triple, target_step: Triple,
                 along: Sequence[Sequence[Taps]]) -> Correlation:
    phases = []
    for d, h, w in product(*along):
        taps = list(product(d.taps, h.taps, w.taps))
        phases.append(Phase(
            (d.start, h.start, w.start), (d.positions, h.positions, w.positions),
            tuple((a, b, c) for (_, a), (_, b), (_, c) in taps),
            tuple((i * kernel[1] + j) * kernel[2] + k for (i, _), (j, _), (k, _) in taps),
            (len(d.taps), len(h.taps), len(w.taps))))
    offsets = [offset for phase in phases for offset in phase.offsets] or [(0, 0, 0)]
    low, high = (tuple(extreme(each[i] for each in offsets) for i in range(3)) for extreme in (min, max))
    return Correlation(batch, groups, in_channels, out_channels, source_sizes, target_sizes, kernel, source_step,
                       target_step, tuple(phases), low, high)  # type: ignore[arg-type]
