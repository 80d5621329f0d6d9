"""Convolutions of small images: the tables of positions and the shapes that a geometry determines are kept.

A small convolution is one product, and takes less time than cutting the images into windows does. The products and the
order of the sums are those of `convolution`, so that the bits are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .convolution import ENOUGH_POSITIONS, output_size, windows_of

#: the most elements of the columns
MOST = 1 << 14
#: the most geometries that are kept
GEOMETRIES = 512

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]
Shape = tuple[int, ...]


def _are_plain(x: np.ndarray, y: np.ndarray) -> bool:
    return (x.dtype is y.dtype and x.dtype.kind == "f" and x.itemsize > 2 and x.flags.c_contiguous
            and y.flags.c_contiguous)


def forward(x: np.ndarray, w: np.ndarray, geometry: Any) -> np.ndarray | None:
    """The convolution of `x` (N, C, *spatial) with `w` (O, C / groups, *kernel); None where it is not small."""
    if not _are_plain(x, w):
        return None
    kernel = _forward(x.shape, w.shape, geometry.positions, geometry.stride, geometry.padding, geometry.dilation,
                      geometry.groups)
    return None if kernel is None else kernel(x, w)


def input_gradient(g: np.ndarray, w: np.ndarray, geometry: Any) -> np.ndarray | None:
    """The gradient by the image, of `g` (N, O, *positions); None where it is not small."""
    if not _are_plain(g, w):
        return None
    kernel = _input_gradient(g.shape, w.shape, geometry)
    return None if kernel is None else kernel(g, w)


def weight_gradient(g: np.ndarray, x: np.ndarray, geometry: Any) -> np.ndarray | None:
    """The gradient by the weight, (O, C / groups, *kernel); None where it is not small."""
    if not _are_plain(g, x):
        return None
    kernel = _weight_gradient(g.shape, x.shape, geometry)
    return None if kernel is None else kernel(g, x)


def _is_small(n: int, channels: int, outputs: int, kernel: Shape, positions: Shape) -> bool:
    """Whether neither the columns are many, nor would one image be a product by itself."""
    columns = n * channels * prod(kernel) * prod(positions)
    return 0 < columns <= MOST and outputs > 0 and (prod(kernel) > 1 or prod(positions) < ENOUGH_POSITIONS // 2)


def _table(shape: Shape, kernel: Shape, positions: Shape, stride: Shape, padding: Shape, dilation: Shape,
           images_last: bool) -> np.ndarray:
    """The flat positions in padded images of all windows: (C, *kernel, N, *positions), or (N, C, ...)."""
    padded = (*shape[:2], *(n + 2 * p for n, p in zip(shape[2:], padding, strict=True)))
    windows = windows_of(np.arange(prod(padded)).reshape(padded), kernel, positions, stride, dilation)
    return np.moveaxis(windows, 0, 1 + len(kernel)) if images_last else windows


def _is_copied(table: np.ndarray, shape: Shape) -> bool:
    """Whether windows of this layout are copied where they take a shape: a product of a view may round otherwise."""
    return not np.may_share_memory(table, table.reshape(shape))


def _gather(shape: Shape, padding: Shape, table: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The function of images that gives their elements at the positions of a table."""
    table = np.ascontiguousarray(table)
    if not any(padding):
        return lambda x: x.reshape(-1).take(table)
    padded_shape = (*shape[:2], *(n + 2 * p for n, p in zip(shape[2:], padding, strict=True)))
    inside: Any = (..., *(slice(p, p + n) for n, p in zip(shape[2:], padding, strict=True)))
    zeros = np.zeros

    def gather(x: np.ndarray) -> Any:
        padded = zeros(padded_shape, x.dtype)
        padded[inside] = x
        return padded.reshape(-1).take(table)

    return gather


def _product(a: np.ndarray, b: np.ndarray, shape: Shape, product: Shape) -> np.ndarray:
    """a @ b in an array of a shape that owns its memory, so that a leaf may take it over as its gradient."""
    result = np.empty(shape, a.dtype)
    np.matmul(a, b, out=result.reshape(product))
    return result


class Columns(NamedTuple):
    """How a small convolution is one product of the weight with columns of images.

    Attributes:
        table: the flat positions in the images of the columns' elements, in their shape; -1 for padding.
        matrix, product: the shapes of the weight and of the product.
        exchanged: the product's shape where images come after output channels, which are then exchanged; else None.
    """

    table: np.ndarray
    matrix: Shape
    product: Shape
    exchanged: Shape | None


def columns_of(x: Shape, w: Shape, geometry: Any) -> Columns | None:
    """The columns of `forward` for images and weights of given shapes; None where it is not small."""
    n, c = x[:2]
    o, channels, *sizes = w
    kernel, positions, groups, padding = tuple(sizes), geometry.positions, geometry.groups, geometry.padding
    count = prod(positions)
    if not _is_small(n, c, o, kernel, positions):
        return None
    depth, matrix = channels * prod(kernel), (groups, o // groups, channels * prod(kernel))
    places = np.full((n, c, *(m + 2 * p for m, p in zip(x[2:], padding, strict=True))), -1)
    inside: Any = (..., *(slice(p, p + m) for m, p in zip(x[2:], padding, strict=True)))
    places[inside] = np.arange(prod(x)).reshape(x)
    windows = windows_of(places, kernel, positions, geometry.stride, geometry.dilation)
    if channels == 1 and groups > 1:
        if not _is_copied(windows, (n, groups, depth, count)):
            return None
        return Columns(windows.reshape(n, groups, depth, count), matrix, (n, groups, o // groups, count), None)
    table = np.moveaxis(windows, 0, 1 + len(kernel)).reshape(groups, depth, n * count)
    return Columns(table, matrix, (groups, o // groups, n * count), None if n == 1 else (o, n, *positions))


class Shares(NamedTuple):
    """How the gradient by small images is a product whose elements are added at places of the images.

    Attributes:
        matrix, columns: the shapes of the weight and of the output's gradient, images exchanged with output channels.
        targets: the flat positions in the images of the product's elements; -1 for padding.
    """

    matrix: Shape
    columns: Shape
    targets: np.ndarray


def shares_of(g: Shape, w: Shape, geometry: Any) -> Shares | None:
    """The shares of `input_gradient` for shapes of a gradient and a weight; None where it computes in another way."""
    spatial, kernel, positions, stride, padding, dilation, groups = geometry
    (n, o), channels = g[:2], w[1]
    if not _is_small(n, groups * channels, o, kernel, positions) or g[2:] != positions:
        return None
    if channels == 1 < groups or (max(stride, default=1) == 1 and o <= 2 * groups * channels):
        return None
    image = (n, groups * channels, *spatial)
    places = np.full((*image[:2], *(m + 2 * p for m, p in zip(spatial, padding, strict=True))), -1)
    inside: Any = (..., *(slice(p, p + m) for m, p in zip(spatial, padding, strict=True)))
    places[inside] = np.arange(prod(image)).reshape(image)
    windows = np.moveaxis(windows_of(places, kernel, positions, stride, dilation), 0, 1 + len(kernel))
    return Shares((groups, o // groups, channels * prod(kernel)), (groups, o // groups, n * prod(positions)),
                  np.ascontiguousarray(windows).reshape(-1))


@functools.lru_cache(GEOMETRIES)
def _forward(x: Shape, w: Shape, positions: Shape, stride: Shape, padding: Shape, dilation: Shape,
             groups: int) -> Kernel | None:
    n, c = x[:2]
    o, channels, *sizes = w
    kernel, count = tuple(sizes), prod(positions)
    if not _is_small(n, c, o, kernel, positions):
        return None
    shape, depth = (n, o, *positions), channels * prod(kernel)
    matmul = np.matmul
    product: Shape
    if channels == 1 and groups > 1:
        table = _table(x, kernel, positions, stride, padding, dilation, False)
        if not _is_copied(table, (n, groups, depth, count)):
            return None
        gather = _gather(x, padding, table.reshape(n, groups, depth, count))
        matrix, product = (groups, o // groups, depth), (n, groups, o // groups, count)
        return lambda x, w: _product(w.reshape(matrix), gather(x), shape, product)
    gather = _gather(x, padding, _table(x, kernel, positions, stride, padding, dilation, True)
                     .reshape(groups, depth, n * count))
    matrix = (groups, o // groups, depth)
    if n == 1:
        product = (groups, o // groups, count)
        return lambda x, w: _product(w.reshape(matrix), gather(x), shape, product)
    product = (o, n, *positions)
    return lambda x, w: matmul(w.reshape(matrix), gather(x)).reshape(product).swapaxes(0, 1).copy()


@functools.lru_cache(GEOMETRIES)
def _weight_gradient(g: Shape, x: Shape, geometry: Any) -> Kernel | None:
    _, kernel, positions, stride, padding, dilation, groups = geometry
    (n, o), c = g[:2], x[1]
    channels, count = c // groups, prod(positions)
    if not _is_small(n, c, o, kernel, positions) or g[2:] != positions:
        return None
    taps, shape, matmul = prod(kernel), (o, channels, *kernel), np.matmul
    if channels == 1 and groups > 1:
        table = _table(x, kernel, positions, stride, padding, dilation, False)
        if not _is_copied(table, (n, groups, taps, count)):
            return None
        gather = _gather(x, padding, table.reshape(n, groups, taps, count))
        parts = (n, groups, o // groups, count)
        return lambda g, x: matmul(g.reshape(parts), gather(x).swapaxes(2, 3)).sum(0).reshape(shape)
    gather = _gather(x, padding, _table(x, kernel, positions, stride, padding, dilation, True)
                     .reshape(groups, channels * taps, n * count))
    part, product = (groups, o // groups, n * count), (groups, o // groups, channels * taps)

    def gradient(g: np.ndarray, x: np.ndarray) -> np.ndarray:
        result = _product(g.swapaxes(0, 1).reshape(part), gather(x).swapaxes(1, 2), shape, product)
        result += 0.0  # the sum begins with 0, so that there is no -0
        return result

    return gradient


@functools.lru_cache(GEOMETRIES)
def _input_gradient(g: Shape, w: Shape, geometry: Any) -> Kernel | None:
    spatial, kernel, positions, stride, padding, dilation, groups = geometry
    (n, o), channels = g[:2], w[1]
    if not _is_small(n, groups * channels, o, kernel, positions) or g[2:] != positions:
        return None
    image, count, taps = (n, groups * channels, *spatial), prod(positions), prod(kernel)
    depthwise = channels == 1 and groups > 1
    if not depthwise and max(stride, default=1) == 1 and o <= 2 * groups * channels:
        margins = tuple(d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True))
        if min(margins, default=0) >= 0 and output_size(positions, kernel, stride, margins, dilation) == spatial:
            return _by_flipped_kernel(g, w, spatial, stride, margins, dilation, groups)
    if depthwise and o > groups:
        return None
    padded = (*image[:2], *(m + 2 * p for m, p in zip(spatial, padding, strict=True)))
    inside: Any = (..., *(slice(p, p + m) for m, p in zip(spatial, padding, strict=True)))
    matmul, add_at = np.matmul, np.add.at
    targets = np.ascontiguousarray(_table(image, kernel, positions, stride, padding, dilation,
                                          not depthwise)).reshape(-1)

    if depthwise:
        parts, weights = (n, groups, 1, count), (groups, taps, 1)

        def shares(g: np.ndarray, w: np.ndarray) -> Any:
            return g.reshape(parts) * w.reshape(weights)
    else:
        matrix, columns = (groups, o // groups, channels * taps), (groups, o // groups, n * count)

        def shares(g: np.ndarray, w: np.ndarray) -> Any:
            return matmul(w.reshape(matrix).swapaxes(1, 2), g.swapaxes(0, 1).reshape(columns))

    def gradient(g: np.ndarray, w: np.ndarray) -> np.ndarray:
        result = np.zeros(padded, g.dtype)
        add_at(result.reshape(-1), targets, shares(g, w).reshape(-1))
        return result[inside].copy() if padded != image else result

    return gradient


def _by_flipped_kernel(g: Shape, w: Shape, spatial: Shape, stride: Shape, margins: Shape, dilation: Shape,
                       groups: int) -> Kernel | None:
    """At stride 1: a convolution with the flipped kernel, channels exchanged."""
    o, channels, *kernel = w
    backwards: Any = (slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))
    shape = (groups * channels, o // groups, *kernel)
    exchanged = (groups, o // groups, channels, *kernel)
    weights: np.ndarray = np.arange(prod(w)).reshape(w)
    flipped = weights[backwards].reshape(exchanged).swapaxes(1, 2).reshape(shape)
    convolve = _forward(g, shape, spatial, stride, margins, dilation, groups)
    if convolve is None:
        return None
    if np.may_share_memory(weights, flipped):  # a product of a view may round otherwise
        return lambda g, w: convolve(g, w[backwards].reshape(exchanged).swapaxes(1, 2).reshape(shape))
    table = np.ascontiguousarray(flipped)
    return lambda g, w: convolve(g, w.reshape(-1).take(table))


@functools.lru_cache(GEOMETRIES)
def _targets(image: Shape, kernel: Shape, positions: Shape, stride: Shape, padding: Shape, dilation: Shape,
             kernel_first: bool) -> np.ndarray:
    """The flat positions in padded images of all windows, (N, C, *kernel, *positions), or with the kernel first."""
    table = _table(image, kernel, positions, stride, padding, dilation, False)
    if kernel_first:
        table = np.moveaxis(table, (0, 1), (len(kernel), len(kernel) + 1))
    return np.ascontiguousarray(table).reshape(-1)


def columns_to_images(columns: np.ndarray, image: Shape, kernel: Shape, stride: Shape, padding: Shape,
                      dilation: Shape) -> np.ndarray | None:
    """The sums of windows (N, C · kernel, positions) at their places in images; None where they are not few."""
    if columns.size > MOST or columns.dtype.kind != "f" or columns.itemsize < 4:
        return None
    positions = output_size(image[2:], kernel, stride, padding, dilation)
    return _sum_of_windows(columns, image, kernel, positions, stride, padding, dilation, False)


def _sum_of_windows(values: np.ndarray, image: Shape, kernel: Shape, positions: Shape, stride: Shape, padding: Shape,
                    dilation: Shape, kernel_first: bool) -> np.ndarray:
    padded = (*image[:2], *(n + 2 * p for n, p in zip(image[2:], padding, strict=True)))
    result = np.zeros(padded, values.dtype)
    targets = _targets(image, kernel, positions, stride, padding, dilation, kernel_first)
    np.add.at(result.reshape(-1), targets, values.reshape(-1))
    if padded == image:
        return result
    inside: Any = (..., *(slice(p, p + n) for n, p in zip(image[2:], padding, strict=True)))
    return result[inside].copy()


__all__ = ["Columns", "Shares", "columns_of", "columns_to_images", "forward", "input_gradient", "shares_of",
           "weight_gradient"]
