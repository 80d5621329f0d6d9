"""What a convolution computes, as sums over taps: one form for the convolution and for its transpose.

A *correlation* adds up, at every output position, products of a source's elements with weights:

    target[n, start + q · target_step, o] = Σ over taps, c of source[n, q · source_step + offset, c] · weight[tap, c, o]

A convolution is one such sum, whose positions step through the source by the stride. Its transpose is several: the
positions that are congruent modulo the stride, a *phase*, share their taps and step through the source one by one.
Spatial dimensions are always three, those that are missing in front being of extent 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

Triple = tuple[int, int, int]


def triple(values: Sequence[int], missing: int) -> Triple:
    """Three numbers, `missing` standing for the dimensions in front that are not there.

    >>> triple((3, 5), 1)
    (1, 3, 5)
    """
    first, second, third = (missing,) * (3 - len(values)) + tuple(values)
    return first, second, third


class Taps(NamedTuple):
    """The positions along one dimension that share their taps: first of them, how many, and (kernel index, offset)s."""

    start: int
    positions: int
    taps: tuple[tuple[int, int], ...]


class Phase(NamedTuple):
    """Output positions that share their taps.

    Attributes:
        start: the first position.
        counts: how many along each dimension.
        offsets: of each tap, from a position's place in the source, in ascending order along each dimension.
        kernel: of each tap, its index in the kernel, flat.
        along: how many taps lie along each dimension.
    """

    start: Triple
    counts: Triple
    offsets: tuple[Triple, ...]
    kernel: tuple[int, ...]
    along: Triple


class Correlation(NamedTuple):
    """Sums over taps; `depth` and `width` are the channels of one group of the source and of the target.

    Attributes:
        extents: the source's spatial sizes.
        sizes: the target's.
        kernel: the kernel's.
        least, most: the taps' offsets along each dimension, over all phases.
    """

    batch: int
    groups: int
    depth: int
    width: int
    extents: Triple
    sizes: Triple
    kernel: Triple
    source_step: Triple
    target_step: Triple
    phases: tuple[Phase, ...]
    least: Triple
    most: Triple

    @property
    def grid(self) -> Triple:
        """Positions along each dimension, in the phase that has most."""
        a, b, c = (max(phase.counts[i] for phase in self.phases) for i in range(3))
        return a, b, c

    @property
    def inside(self) -> bool:
        """Whether all taps of all positions lie in the source."""
        return all(low >= 0 and (phase.counts[i] - 1) * self.source_step[i] + high < self.extents[i]
                   for phase in self.phases
                   for i, (low, high) in enumerate(zip(self.least, self.most, strict=True)))

    @property
    def multiplications(self) -> int:
        """How many products are added up."""
        return self.batch * self.groups * self.depth * self.width * sum(
            prod(phase.counts) * len(phase.kernel) for phase in self.phases)


def forward(batch: int, groups: int, depth: int, width: int, extents: Triple, positions: Triple, kernel: Triple,
            stride: Triple, padding: Triple, dilation: Triple) -> Correlation:
    """The convolution: `depth` input channels a group, `width` output channels.

    >>> forward(1, 1, 1, 1, (1, 1, 5), (1, 1, 5), (1, 1, 3), (1, 1, 1), (0, 0, 1), (1, 1, 1)).phases[0].offsets
    ((0, 0, -1), (0, 0, 0), (0, 0, 1))
    """
    along = [[Taps(0, count, tuple((k, k * d - p) for k in range(size)))]
             for count, size, p, d in zip(positions, kernel, padding, dilation, strict=True)]
    return _correlation(batch, groups, depth, width, extents, positions, kernel, stride, (1, 1, 1), along)


def transposed(batch: int, groups: int, depth: int, width: int, positions: Triple, extents: Triple, kernel: Triple,
               stride: Triple, padding: Triple, dilation: Triple) -> Correlation:
    """The transpose: from the convolution's output of `positions` and `depth` channels a group to its input."""
    along = []
    for extent, size, s, p, d in zip(extents, kernel, stride, padding, dilation, strict=True):
        phases = []
        for start in range(min(s, extent)):
            taps = sorted(((start + p - k * d) // s, k) for k in range(size) if (start + p - k * d) % s == 0)
            phases.append(Taps(start, -(-(extent - start) // s), tuple((k, offset) for offset, k in taps)))
        along.append(phases)
    return _correlation(batch, groups, depth, width, positions, extents, kernel, (1, 1, 1), stride, along)


def _correlation(batch: int, groups: int, depth: int, width: int, extents: Triple, sizes: Triple, kernel: Triple,
                 source_step: Triple, target_step: Triple, along: Sequence[Sequence[Taps]]) -> Correlation:
    phases = []
    for d, h, w in product(*along):
        taps = list(product(d.taps, h.taps, w.taps))
        phases.append(Phase(
            (d.start, h.start, w.start), (d.positions, h.positions, w.positions),
            tuple((a, b, c) for (_, a), (_, b), (_, c) in taps),
            tuple((i * kernel[1] + j) * kernel[2] + k for (i, _), (j, _), (k, _) in taps),
            (len(d.taps), len(h.taps), len(w.taps))))
    every = [offsets for phase in phases for offsets in phase.offsets] or [(0, 0, 0)]
    least, most = (tuple(extreme(each[i] for each in every) for i in range(3)) for extreme in (min, max))
    return Correlation(batch, groups, depth, width, extents, sizes, kernel, source_step, target_step, tuple(phases),
                       least, most)  # type: ignore[arg-type]
