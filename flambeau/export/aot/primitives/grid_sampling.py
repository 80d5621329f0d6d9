"""Sampling of images at the points of a grid over IR values; the taps are those of `kernels.grid_sampling`."""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod
from typing import Any

from ....ir.graph.value import INT64, Value
from ....ir.lowering.indexed_kernels import scatter_add, take
from ....ir.lowering.namespace import Namespace
from ....kernels.grid_sampling import BICUBIC, BILINEAR, NEAREST, REFLECTION, ZEROS

#: the cubic kernel's parameter
_CUBIC = -0.75


class GridSampling(Namespace):
    """Primitives behind `grid_sample`."""

    def gather_planes(self, x: Value, index: Value, dims: int) -> Value:
        g, count, size = self.graph, prod(x.shape[:x.ndim - dims]), prod(x.shape[x.ndim - dims:])
        flat = g.reshape(index, (count, index.size // count))
        return g.reshape(take(g.reshape(x, (count, size)), flat, flat.shape, 1), index.shape)

    def scatter_planes(self, g: Value, index: Value, spatial: Any, overlapping: bool) -> Value:
        if not overlapping or index.shape != g.shape:
            return super().scatter_planes(g, index, spatial, overlapping)
        graph, dims = g.graph, len(spatial)
        count = prod(g.shape[:g.ndim - dims])
        flat, places = (graph.reshape(graph.copy(x), (count, x.size // count)) for x in (g, index))
        result = scatter_add(flat, places, (count, prod(spatial)), 1)
        return graph.reshape(result, (*g.shape[:g.ndim - dims], *spatial))

    def lower_grid_sampler(self, x: Value, grid: Value, *, mode: int, padding: int, align_corners: bool,
                           saved: list[Any] | None) -> Value:
        """The forward of the operators `_grid_sampler_2d` and `_grid_sampler_3d`."""
        g, rank = self.graph, grid.shape[-1]
        sizes, channels = x.shape[-rank:], x.shape[-rank - 1]
        indices, axes = self.grid_taps(grid, sizes, mode, padding, align_corners)
        if saved is not None:
            saved[:] = [*indices, *(value for values in axes for value in values)]
        total: Value | None = None
        for flat, weights in zip(indices, product(*map(_weights, axes)), strict=True):
            lead, points = flat.shape[:-rank], flat.shape[-rank:]
            index = g.expand(g.reshape(flat, (*lead, 1, *points)), (*lead, channels, *points))
            weight = g.reshape(reduce(lambda a, b: a * b, weights), (*lead, 1, *points))
            part = self.gather_planes(x, index, rank) * weight
            total = part if total is None else total + part
        assert total is not None
        return total

    def grid_taps(self, grid: Value, sizes: tuple[int, ...], mode: int, padding: int,
                   align_corners: bool) -> tuple[list[Value], list[list[Value]]]:
        """As `kernels.grid_sampling.grid_taps`."""
        g = self.graph
        axes: list[list[Value]] = []
        taps = []
        for axis, size in enumerate(sizes):
            x = g.copy(g.select_index(grid, grid.ndim - 1, len(sizes) - 1 - axis))
            fraction, slope, found = self._axis_taps(x, size, mode, padding, align_corners)
            taps.append(found)
            slopes = [slope * inside for _, inside in found]
            if mode == BILINEAR:
                slopes[0] = -slopes[0]
            axes.append([x, fraction, -fraction, slope, *(inside for _, inside in found), *slopes])
        indices = []
        for choice in product(*taps):
            flat = choice[0][0]
            for size, (index, _) in zip(sizes[1:], choice[1:], strict=True):
                flat = flat * size + index
            indices.append(flat)
        if mode == NEAREST:
            return indices, [[reduce(lambda a, b: a * b, (found[0][1] for found in taps))]]
        return indices, axes

    def _axis_taps(self, x: Value, size: int, mode: int, padding: int,
                   align_corners: bool) -> tuple[Value, Value, list[tuple[Value, Value]]]:
        g = self.graph
        offsets: tuple[int, ...]
        scale = (size - 1) / 2 if align_corners else size / 2
        position = (x + 1.0) * scale
        if not align_corners:
            position = position - 0.5
        slope = g.expand(g.constant(scale, x.dtype), x.shape)
        if mode != BICUBIC:
            position, slope = self._padded(position, slope, size, padding, align_corners)
        if mode == NEAREST:
            base, offsets = g.apply("round", position), (0,)
            slope = g.expand(g.constant(0, x.dtype), x.shape)
        else:
            base, offsets = g.apply("floor", position), (0, 1) if mode == BILINEAR else (-1, 0, 1, 2)
        taps = []
        for offset in offsets:
            index = base + float(offset) if offset else base
            if mode == BICUBIC:
                index = self._padded(index, slope, size, padding, align_corners)[0]
            inside = g.apply("and", g.apply("gt", index, -1.0), g.apply("lt", index, float(size)))
            kept = g.select(inside, index, 0.0)
            taps.append((g.cast(kept, INT64), g.cast(inside, x.dtype)))
        return position - base, slope, taps

    def _padded(self, position: Value, slope: Value, size: int, padding: int,
                align_corners: bool) -> tuple[Value, Value]:
        g = self.graph
        if padding == ZEROS:
            return position, slope
        if padding == REFLECTION:
            low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
            position, slope = self._reflected(position, slope, low, span)
        inside = g.apply("and", g.apply("gt", position, 0.0), g.apply("lt", position, size - 1.0))
        clipped = g.select(g.apply("gt", position, 0.0), g.apply("minimum", position, size - 1.0), 0.0)
        return clipped, slope * g.cast(inside, slope.dtype)

    def _reflected(self, position: Value, slope: Value, low: float, span: float) -> tuple[Value, Value]:
        g = self.graph
        if span <= 0:
            zero = g.expand(g.constant(0, position.dtype), position.shape)
            return zero, zero
        offset = position - low
        slope = g.select(g.apply("lt", offset, 0.0), -slope, slope)
        offset = g.apply("abs", offset)
        flips, rest = g.apply("floor", offset / span), g.apply("fmod", offset, span)
        even = g.apply("eq", g.apply("fmod", flips, 2.0), 0.0)
        return g.select(even, rest + low, span - rest + low), g.select(even, slope, -slope)


def _weights(arrays: list[Value]) -> list[Value]:
    """The weights of an axis' taps."""
    if len(arrays) == 1:  # the nearest pixel
        return arrays
    t, n = arrays[1], (len(arrays) - 4) // 2
    inside = arrays[4:4 + n]
    if n == 2:
        return [(1.0 - t) * inside[0], t * inside[1]]
    weights = (_far(t + 1.0), _near(t), _near(1.0 - t), _far(2.0 - t))
    return [w * each for w, each in zip(weights, inside, strict=True)]


def _near(x: Value) -> Value:
    """The cubic kernel at distances |x| ≤ 1."""
    return ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1.0


def _far(x: Value) -> Value:
    """The cubic kernel at distances 1 ≤ |x| ≤ 2."""
    return ((x - 5.0) * x + 8.0) * x * _CUBIC - 4 * _CUBIC


__all__ = ["GridSampling"]
