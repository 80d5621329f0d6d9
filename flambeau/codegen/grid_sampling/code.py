"""Kernels of `grid_sample`: code generation.

Vectors are over the points of a grid; each vector's taps are computed once for all channels. Sums are in the order of
PyTorch's kernels: taps of images by fused multiplications and additions, taps of volumes one by one, and the gradient
of an image vector by vector, tap by tap.

The bodies' operands:

    forward     out (N, C, P); input, grid (N, P, rank)
    image       gradient of the input (N, C, *spatial); g (N, C, P), grid
    grid        gradient of the grid (N, P, rank); g, input, grid

The grid, g and outputs are row-major. Chunks are blocks of points of an image; in `image` blocks of channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I1, I32, I64, POINTER, at, first_lanes, i64, local, loop, smaller, stack_block, word
from ..llvm.lowering import constant, intrinsic, memory_type, splat
from ..llvm.vectors import Mask, Real, VectorContext, where
from ..math.building_blocks import fma
from .positions import BICUBIC, BILINEAR, NEAREST, Sampling
from .taps import Axis, Tap, axis

FORWARD, IMAGE, GRID = "forward", "image", "grid"
#: bytes of the points of an image whose pixels PyTorch adds to one after the other
GROUP_BYTES = 32


class Combination(NamedTuple):
    """A pixel: one tap of each dimension, in the order of the image's dimensions."""

    taps: tuple[Tap, ...]
    offset: Any
    inside: Mask | None


class Emitter:
    """Emits one module.

    Args:
        dtype: float32 or float64.
        sampling: the modes.
        lanes: elements of a vector.
    """

    def __init__(self, dtype: np.dtype, sampling: Sampling, lanes: int) -> None:
        self.dtype, self.sampling, self.lanes, self.size = dtype, sampling, lanes, dtype.itemsize
        self.element = memory_type(dtype)
        self.vector = ir.VectorType(self.element, lanes)

    def _begin(self, module: ir.Module, operands: int) -> Any:
        """Begin the body: addresses of operands, and the plan's fields. Returns the chunk's first point or channel."""
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b, rank, lanes = self.b, self.sampling.rank, self.lanes
        pointers, plan, chunk = body.args
        self.operands = [b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                         for i in range(operands)]
        self.context = VectorContext(b, self.vector)
        (self.points, self.channels, self.blocks, self.block, self.image, self.channel) = (
            word(b, plan, i) for i in range(6))
        sizes, strides = ([word(b, plan, 6 + k * rank + i) for i in range(rank)] for k in (0, 1))
        self.extents = [Real(self.context, splat(b, b.sitofp(n, self.element), lanes)) for n in sizes]
        self.strides = [splat(b, b.trunc(n, I32), lanes) for n in strides]
        self.number = b.udiv(chunk, self.blocks)
        return b.mul(b.urem(chunk, self.blocks), self.block)

    def _row(self, base: Any, width: Any) -> Any:
        """The part of a row-major array that belongs to this chunk's image; `width`: elements of an image's part."""
        return self.b.gep(base, [self.b.mul(self.number, width)], source_etype=self.element)

    # ----- points -----

    def _load(self, base: Any, index: Any, mask: Any) -> Any:
        b = self.b
        return intrinsic(b, "masked.load", self.vector, [
            b.gep(base, [index], source_etype=self.element), ir.Constant(I32, self.size), mask,
            constant(0, self.vector)], [self.vector, POINTER])

    def _store(self, value: Any, base: Any, index: Any, mask: Any) -> None:
        b = self.b
        intrinsic(b, "masked.store", ir.VoidType(), [
            value, b.gep(base, [index], source_etype=self.element), ir.Constant(I32, self.size), mask],
            [self.vector, POINTER])

    def _shuffled(self, x: Any, y: Any, lanes: list[int]) -> Any:
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, self.lanes), lanes))

    def _coordinates(self, grid: Any, point: Any, left: Any) -> list[Any]:
        """The coordinates of a vector of points, those of the last dimension first; 0 behind the last point."""
        b, lanes, rank = self.b, self.lanes, self.sampling.rank
        start, count = b.mul(point, i64(rank)), b.mul(left, i64(rank))
        parts = [self._load(grid, b.add(start, i64(k * lanes)),
                            first_lanes(b, b.sub(count, i64(k * lanes)), lanes)) for k in range(rank)]
        found = []
        for j in range(rank):
            places = [rank * i + j for i in range(lanes)]
            value = self._shuffled(parts[0], parts[1], [p if p < 2 * lanes else 0 for p in places])
            if rank == 3:
                value = self._shuffled(value, parts[2],
                                       [i if p < 2 * lanes else p - lanes for i, p in enumerate(places)])
            found.append(value)
        return found

    def _store_coordinates(self, values: list[Any], grid: Any, point: Any, left: Any) -> None:
        """Store what `_coordinates` would load."""
        b, lanes, rank = self.b, self.lanes, self.sampling.rank
        start, count = b.mul(point, i64(rank)), b.mul(left, i64(rank))
        for k in range(rank):
            places = [divmod(k * lanes + i, rank) for i in range(lanes)]  # point, coordinate
            value = self._shuffled(values[0], values[1], [p + lanes * j if j < 2 else 0 for p, j in places])
            if rank == 3:
                value = self._shuffled(value, values[2],
                                       [i if j < 2 else lanes + p for i, (p, j) in enumerate(places)])
            self._store(value, grid, b.add(start, i64(k * lanes)),
                        first_lanes(b, b.sub(count, i64(k * lanes)), lanes))

    def _axes(self, grid: Any, point: Any, left: Any) -> list[Axis]:
        """The taps of a vector of points, by dimension of the image."""
        coordinates = [Real(self.context, x) for x in reversed(self._coordinates(grid, point, left))]
        return [axis(x, extent, stride, self.sampling)
                for x, extent, stride in zip(coordinates, self.extents, self.strides, strict=True)]

    def _combinations(self, axes: list[Axis], first_slowest: bool = True) -> Iterator[Combination]:
        """All pixels, the last dimension fastest; with `first_slowest` False the first one fastest."""
        b = self.b
        ordered = axes if first_slowest else axes[::-1]
        for choice in product(*(each.taps for each in ordered)):
            taps = choice if first_slowest else choice[::-1]
            offset, inside = taps[0].offset, taps[0].inside
            for tap in taps[1:]:
                offset = b.add(offset, tap.offset)
                inside = tap.inside if inside is None else inside if tap.inside is None else inside & tap.inside
            yield Combination(taps, offset, inside)

    def _pixel(self, base: Any, pixel: Combination) -> Real:
        """The pixels' values, 0 outside of the image."""
        b = self.b
        addresses = b.gep(base, [pixel.offset], source_etype=self.element)
        addresses.type = ir.VectorType(POINTER, self.lanes)  # llvmlite types it as one pointer
        everything = ir.Constant(ir.VectorType(I1, self.lanes), [1] * self.lanes)
        value = Real(self.context, intrinsic(b, "masked.gather", self.vector, [
            addresses, ir.Constant(I32, self.size), everything, constant(0, self.vector)],
            [self.vector, addresses.type]))
        return value if pixel.inside is None else where(pixel.inside, value, 0.0)

    def _weight(self, pixel: Combination, without: int | None = None) -> Real | None:
        """The product of a pixel's weights, the last dimension's first; None for the nearest pixel.

        Args:
            without: a dimension that is left out.
        """
        total: Real | None = None
        for dim in reversed(range(len(pixel.taps))):
            weight = pixel.taps[dim].weight
            if dim != without and weight is not None:
                total = weight if total is None else total * weight
        return total

    # ----- forward -----

    def forward(self) -> str:
        """out[n, c, p] = the interpolated pixel."""
        module = ir.Module("grid_sample")
        first = self._begin(module, 3)
        b = self.b
        out, source, grid = self.operands
        out = self._row(out, b.mul(self.channels, self.points))
        source = at(b, source, b.mul(self.number, self.image))
        grid = self._row(grid, b.mul(self.points, i64(self.sampling.rank)))
        last = smaller(b, b.add(first, self.block), self.points)
        with loop(b, first, last, self.lanes) as point:
            left = b.sub(last, point)
            mask = first_lanes(b, left, self.lanes)
            axes = self._axes(grid, point, left)
            pixels = list(self._combinations(axes))
            weights = [self._weight(pixel) for pixel in pixels] if self.sampling.mode != BICUBIC else []
            with loop(b, i64(0), self.channels) as c:
                plane = at(b, source, b.mul(c, self.channel))
                value = (self._cubic(plane, axes, pixels) if self.sampling.mode == BICUBIC
                         else self._interpolated(plane, pixels, weights))
                self._store(value.ir, out, b.add(b.mul(c, self.points), point), mask)
        b.ret_void()
        return str(module)

    def _interpolated(self, plane: Any, pixels: list[Combination], weights: list[Real | None]) -> Real:
        total: Real | None = None
        for pixel, weight in zip(pixels, weights, strict=True):
            value = self._pixel(plane, pixel)
            if weight is None:
                return value
            if self.sampling.rank == 2:
                total = weight * value if total is None else fma(weight, value, total)
            else:
                product_ = value * weight
                if pixel.inside is not None:
                    product_ = where(pixel.inside, product_, 0.0)
                total = (self.context.real(0.0) if total is None else total) + product_
        assert total is not None
        return total

    def _cubic(self, plane: Any, axes: list[Axis], pixels: list[Combination]) -> Real:
        """The interpolation of rows, then of columns; which products are fused is PyTorch's."""
        total: Real | None = None
        for row, tap in enumerate(axes[0].taps):
            a, b, c, d = (self._pixel(plane, pixel) for pixel in pixels[4 * row:4 * row + 4])
            p, q, r, s = (self._known(pixel.taps[1].weight) for pixel in pixels[4 * row:4 * row + 4])
            value, weight = fma(p, a, q * b) + r * c + s * d, self._known(tap.weight)
            total = weight * value if total is None else fma(weight, value, total)
        assert total is not None
        return total

    @staticmethod
    def _known(weight: Real | None) -> Real:
        assert weight is not None
        return weight

    # ----- the gradient of the image -----

    def image_gradient(self) -> str:
        """gradient[n, c, pixel] = the sum of g[n, c, p] times the pixel's weight at p."""
        module = ir.Module("grid_sample_image")
        first = self._begin(module, 3)
        b, rank = self.b, self.sampling.rank
        out, g, grid = self.operands
        plane_size = b.sdiv(self.channel, i64(self.size))
        out = self._row(out, b.mul(self.channels, plane_size))
        g = self._row(g, b.mul(self.channels, self.points))
        grid = self._row(grid, b.mul(self.points, i64(rank)))
        last = smaller(b, b.add(first, self.block), self.channels)
        zero = constant(0, self.vector)
        begin, end = b.mul(first, plane_size), b.mul(last, plane_size)
        with loop(b, begin, end, self.lanes) as place:
            self._store(zero, out, place, first_lanes(b, b.sub(end, place), self.lanes))
        count = self.lanes * {NEAREST: 1, BILINEAR: 2, BICUBIC: 4}[self.sampling.mode] ** rank
        values, places = stack_block(b, self.dtype, count), stack_block(b, np.dtype(np.int32), count)
        with loop(b, i64(0), self.points, self.lanes) as point:
            left = b.sub(self.points, point)
            mask = first_lanes(b, left, self.lanes)
            # PyTorch's bicubic kernel visits the columns of a vector's pixels one after the other
            pixels = list(self._combinations(self._axes(grid, point, left), self.sampling.mode != BICUBIC))
            weights = [self._weight(pixel) if self.sampling.mode != BICUBIC else None for pixel in pixels]
            with loop(b, first, last) as c:
                plane = at(b, out, b.mul(c, self.channel))
                cotangent = Real(self.context, self._load(g, b.add(b.mul(c, self.points), point), mask))
                for number, (pixel, weight) in enumerate(zip(pixels, weights, strict=True)):
                    value = cotangent
                    if self.sampling.mode == BICUBIC:
                        value = value * self._known(pixel.taps[1].weight) * self._known(pixel.taps[0].weight)
                    elif weight is not None:
                        value = value * weight
                    if pixel.inside is not None:
                        value = where(pixel.inside, value, 0.0)
                    lane = i64(number * self.lanes)
                    b.store(value.ir, b.gep(values, [lane], source_etype=self.element), align=self.size)
                    b.store(pixel.offset, b.gep(places, [lane], source_etype=I32), align=4)
                self._add(plane, values, places, len(pixels), smaller(b, left, i64(self.lanes)))
        b.ret_void()
        return str(module)

    def _add(self, plane: Any, values: Any, places: Any, pixels: int, count: Any) -> None:
        """Add stored vectors to elements of a plane in PyTorch's order: pixel by pixel in groups of points."""
        b = self.b
        group = 1 if self.sampling.rank == 3 else min(self.lanes, GROUP_BYTES // self.size)
        with loop(b, i64(0), count, group) as first:
            last = smaller(b, b.add(first, i64(group)), count)
            with loop(b, i64(0), i64(pixels * self.lanes), self.lanes) as start, loop(b, first, last) as lane:
                at_ = b.add(start, lane)
                place = b.load(b.gep(places, [at_], source_etype=I32), typ=I32)
                target = b.gep(plane, [b.sext(place, I64)], source_etype=self.element)
                new = b.load(b.gep(values, [at_], source_etype=self.element), typ=self.element)
                b.store(b.fadd(b.load(target, typ=self.element), new), target)

    # ----- the gradient of the grid -----

    def grid_gradient(self) -> str:
        """gradient[n, p, d] = the sum over channels of g[n, c, p] times the slope of the pixel along d."""
        module = ir.Module("grid_sample_grid")
        first = self._begin(module, 4)
        b, rank = self.b, self.sampling.rank
        out, g, source, grid = self.operands
        out = self._row(out, b.mul(self.points, i64(rank)))
        g = self._row(g, b.mul(self.channels, self.points))
        source = at(b, source, b.mul(self.number, self.image))
        grid = self._row(grid, b.mul(self.points, i64(rank)))
        last = smaller(b, b.add(first, self.block), self.points)
        totals = [local(b, self.vector) for _ in range(rank)]
        with loop(b, first, last, self.lanes) as point:
            left = b.sub(last, point)
            mask = first_lanes(b, left, self.lanes)
            axes = self._axes(grid, point, left)
            pixels = list(self._combinations(axes, self.sampling.mode != BICUBIC))
            for each in totals:
                b.store(constant(0, self.vector), each)
            with loop(b, i64(0), self.channels) as c:
                plane = at(b, source, b.mul(c, self.channel))
                cotangent = Real(self.context, self._load(g, b.add(b.mul(c, self.points), point), mask))
                before = [Real(self.context, b.load(each, typ=self.vector)) for each in totals]
                if self.sampling.mode == BICUBIC:
                    after = self._cubic_slopes(plane, pixels, cotangent, before)
                elif rank == 2:
                    after = self._planar_slopes(plane, axes, pixels, cotangent, before)
                else:
                    after = self._volume_slopes(plane, pixels, cotangent, before)
                for each, value in zip(totals, after, strict=True):
                    b.store(value.ir, each)
            results = [(Real(self.context, b.load(each, typ=self.vector)) * dim.slope).ir
                       for each, dim in zip(totals, axes, strict=True)]
            self._store_coordinates(results[::-1], out, point, left)
        b.ret_void()
        return str(module)

    def _planar_slopes(self, plane: Any, axes: list[Axis], pixels: list[Combination], g: Real,
                       totals: list[Real]) -> list[Real]:
        north, south = (self._known(tap.weight) for tap in axes[0].taps)
        west, east = (self._known(tap.weight) for tap in axes[1].taps)
        nw, ne, sw, se = (self._pixel(plane, pixel) for pixel in pixels)
        by_column = fma(se - sw, south, (ne - nw) * north)
        by_row = fma(se - ne, east, (sw - nw) * west)
        return [fma(by_row, g, totals[0]), fma(by_column, g, totals[1])]

    def _volume_slopes(self, plane: Any, pixels: list[Combination], g: Real, totals: list[Real]) -> list[Real]:
        totals = list(totals)
        for number, pixel in enumerate(pixels):
            value = self._pixel(plane, pixel)
            for dim in range(3):
                term = value
                for other in (2, 1, 0):
                    if other != dim:
                        term = term * self._known(pixel.taps[other].weight)
                term = term * g
                if pixel.inside is not None:
                    term = where(pixel.inside, term, 0.0)
                totals[dim] = totals[dim] + term if number >> (2 - dim) & 1 else totals[dim] - term
        return totals

    def _cubic_slopes(self, plane: Any, pixels: list[Combination], g: Real, totals: list[Real]) -> list[Real]:
        rows, columns = totals
        for pixel in pixels:
            value = self._pixel(plane, pixel) * g
            row, column = pixel.taps
            columns = fma(value * self._known(column.derivative), self._known(row.weight), columns)
            rows = fma(value * self._known(row.derivative), self._known(column.weight), rows)
        return [rows, columns]


def generate(kind: str, dtype: np.dtype, sampling: Sampling, lanes: int) -> str:
    """The module's text.

    Args:
        kind: FORWARD, IMAGE or GRID; there is no GRID of the nearest pixel, whose gradient is 0.
        dtype, sampling, lanes: of `Emitter`.
    """
    if kind == GRID and sampling.mode == NEAREST:
        raise ValueError("the nearest pixel does not depend on the grid")
    emitter = Emitter(dtype, sampling, lanes)
    return {FORWARD: emitter.forward, IMAGE: emitter.image_gradient, GRID: emitter.grid_gradient}[kind]()


__all__ = ["FORWARD", "GRID", "IMAGE", "Emitter", "generate"]
