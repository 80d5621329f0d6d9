"""Positions of a grid's points in pixels: scaling of coordinates from [-1, 1], padding, and the slope by the grid.

Images (2 dimensions) are computed as in PyTorch's vectorized kernel, with products that are added fused; volumes (3) as
in its scalar one, without fusion and with an exact fmod.
"""

from __future__ import annotations

from typing import NamedTuple

from ..llvm.vectors import Real, where
from ..math.building_blocks import fma
from ..math.remainder import fmod

ZEROS, BORDER, REFLECTION = 0, 1, 2
BILINEAR, NEAREST, BICUBIC = 0, 1, 2


class Sampling(NamedTuple):
    """How a grid is sampled.

    Attributes:
        rank: the number of spatial dimensions, 2 or 3.
        mode: BILINEAR, NEAREST or BICUBIC.
        padding: ZEROS, BORDER or REFLECTION.
        align_corners: whether -1 and 1 are the centers of the outermost pixels.
    """

    rank: int
    mode: int
    padding: int
    align_corners: bool


def _clipped(position: Real, slope: Real, size: Real) -> tuple[Real, Real]:
    """Positions clipped to [0, size - 1], NaN to 0; the slope is 0 where they are clipped."""
    last = size - 1.0
    above, below = position > 0.0, position < last
    return where(above, where(below, position, last), 0.0), where(above & below, slope, 0.0)


def _reflected(position: Real, slope: Real, size: Real, sampling: Sampling) -> tuple[Real, Real]:
    """Positions reflected at the borders of the image."""
    low, span = (0.0, size - 1.0) if sampling.align_corners else (-0.5, size)
    offset = position - low
    slope = where(offset < 0.0, -slope, slope)
    offset = abs(offset)
    if sampling.rank == 2:
        twice = span * 2.0
        rest = fma(-(offset / twice).trunc(), twice, offset)
        other = twice - rest
        flipped = rest > other
        reflected = where(flipped, other, rest) + low
    else:
        flips = position.context.call("floor", offset / span)
        rest = fmod(offset, span)
        flipped = fmod(flips, position.context.real(2.0)) > 0.0
        reflected = where(flipped, span - rest, rest) + low
    some = span > 0.0
    return where(some, reflected, 0.0), where(some, where(flipped, -slope, slope), 0.0)


def padded(position: Real, slope: Real, size: Real, sampling: Sampling) -> tuple[Real, Real]:
    """Positions inside the image by the padding mode, and their slopes; unchanged with zeros."""
    if sampling.padding == ZEROS:
        return position, slope
    if sampling.padding == REFLECTION:
        position, slope = _reflected(position, slope, size, sampling)
    return _clipped(position, slope, size)


def unpadded(x: Real, size: Real, sampling: Sampling) -> tuple[Real, Real]:
    """Positions of the coordinates `x`, where pixels are at 0, 1, ... size - 1, and the slope."""
    if sampling.align_corners:
        scale = (size - 1.0) * 0.5
        return (x + 1.0) * scale, scale
    scale = size * 0.5
    return (fma(x + 1.0, scale, -0.5) if sampling.rank == 2 else (x + 1.0) * scale - 0.5), scale


def positions(x: Real, size: Real, sampling: Sampling) -> tuple[Real, Real]:
    """Positions of the coordinates `x`, padded unless the mode is bicubic (which pads taps), and the slope."""
    position, slope = unpadded(x, size, sampling)
    return (position, slope) if sampling.mode == BICUBIC else padded(position, slope, size, sampling)
