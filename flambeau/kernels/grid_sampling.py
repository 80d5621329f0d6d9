"""The pixels that `grid_sample` interpolates between, for each point of a sampling grid."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import numpy as np

ZEROS, BORDER, REFLECTION = 0, 1, 2
BILINEAR, NEAREST, BICUBIC = 0, 1, 2


def _clipped(position: np.ndarray, slope: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions clipped to [0, size - 1], nan to 0; the slope is 0 where they are clipped."""
    inside = (position > 0) & (position < size - 1)
    return np.where(position > 0, np.minimum(position, size - 1), 0).astype(position.dtype), slope * inside


def _reflected(position: np.ndarray, slope: np.ndarray, low: float, span: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions reflected at `low` and `low + span`."""
    if span <= 0:
        return np.zeros_like(position), np.zeros_like(slope)
    offset = position - position.dtype.type(low)
    slope = np.where(offset < 0, -slope, slope)
    offset = np.abs(offset)
    flips, rest = np.floor(offset / position.dtype.type(span)), np.fmod(offset, position.dtype.type(span))
    even = np.fmod(flips, 2) == 0
    low = position.dtype.type(low)
    return np.where(even, rest + low, span - rest + low).astype(position.dtype), np.where(even, slope, -slope)


def _padded(position: np.ndarray, slope: np.ndarray, size: int, padding: int,
            align_corners: bool) -> tuple[np.ndarray, np.ndarray]:
    if padding == REFLECTION:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        position, slope = _reflected(position, slope, low, span)
    return _clipped(position, slope, size) if padding != ZEROS else (position, slope)


def _axis_taps(x: np.ndarray, size: int, mode: int, padding: int, align_corners: bool) -> tuple[Any, Any, list[Any]]:
    """Fractions of positions, their slopes by the grid, and (index, whether inside) of each tap, along one axis."""
    real = x.dtype.type
    offsets: tuple[int, ...]
    scale = real((size - 1) / 2 if align_corners else size / 2)
    position = (x + real(1)) * scale
    if not align_corners:
        position -= real(0.5)
    slope = np.full_like(x, scale)
    if mode != BICUBIC:
        position, slope = _padded(position, slope, size, padding, align_corners)
    if mode == NEAREST:
        base, offsets = np.rint(position), (0,)
        slope = np.zeros_like(slope)
    else:
        base, offsets = np.floor(position), (0, 1) if mode == BILINEAR else (-1, 0, 1, 2)
    taps = []
    for offset in offsets:
        index = base + real(offset)
        if mode == BICUBIC:
            index = _padded(index, slope, size, padding, align_corners)[0]
        inside = (index > -1) & (index < size)
        taps.append((np.where(inside, index, 0).astype(np.int64), inside.astype(x.dtype)))
    return position - base, slope, taps


def grid_taps(grid: Any, sizes: tuple[int, ...], mode: int, padding: int,
              align_corners: bool) -> tuple[list[Any], list[list[Any]]]:
    """What interpolation at the points of a grid (..., D) needs.

    Returns:
        The pixels' flat indices, one array for each combination of taps, those of the last axis fastest. And for each
        axis the grid's coordinate x, the position t between pixels, -t, dt/dx; for each tap 1 inside the image and 0
        elsewhere; and for each tap the factor of its weight's derivative by x. Axes are in the image's order, the
        reverse of the grid's. With the nearest pixel there is one array instead: 1 inside the image, else 0.
    """
    grid = np.asarray(grid)
    axes, taps = [], []
    with np.errstate(invalid="ignore"):
        for axis, size in enumerate(sizes):
            x = grid[..., len(sizes) - 1 - axis].copy()
            fraction, slope, found = _axis_taps(x, size, mode, padding, align_corners)
            taps.append(found)
            slopes = [slope * inside for _, inside in found]
            if mode == BILINEAR:
                np.negative(slopes[0], out=slopes[0])
            axes.append([x, fraction, -fraction, slope, *(inside for _, inside in found), *slopes])
    indices = []
    for choice in product(*taps):
        flat = choice[0][0]
        for size, (index, _) in zip(sizes[1:], choice[1:], strict=True):
            flat = flat * size + index
        indices.append(flat)
    if mode == NEAREST:
        return indices, [[reduce(np.multiply, (found[0][1] for found in taps))]]
    return indices, axes
