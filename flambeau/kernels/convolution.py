"""Convolution as matrix multiplication: gather the windows into columns, multiply, scatter back.

For one image a convolution is ``(O, C·K) @ (C·K, P)``: `K` is the number of kernel elements, `P` of
output positions, and column `p` of the right factor is the window of position `p`. Columns
are built for a block at a time — some images, or some rows of one large image — so that they stay in
the cache and peak memory is bounded for any batch size.

Arrays are laid out ``(N, C, *spatial)`` and weights ``(O, C/groups, *kernel)``, with any number of
spatial axes. The three functions are the convolution and its two transposes. None conjugates: the
gradient of a complex convolution passes the conjugate of the other factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import dtypes

BLOCK_BYTES = 1 << 21  # columns that stay in a core's cache
LARGEST_BLOCK_BYTES = 1 << 26
ENOUGH_POSITIONS = 512  # below this many columns a GEMM spends its time reading the weight

Sizes = Sequence[int]


def output_size(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> tuple[int, ...]:
    """Spatial sizes of a convolution's output: ``(L + 2p - d(k - 1) - 1) // s + 1`` an axis."""
    return tuple((length + 2 * p - d * (k - 1) - 1) // s + 1
                 for length, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True))


def transposed_output_size(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, output_padding: Sizes,
                           dilation: Sizes) -> tuple[int, ...]:
    """Spatial sizes of a transposed convolution's output: ``(L - 1)s - 2p + d(k - 1) + 1 + extra`` an axis."""
    return tuple((length - 1) * s - 2 * p + d * (k - 1) + 1 + extra
                 for length, k, s, p, extra, d
                 in zip(spatial, kernel, stride, padding, output_padding, dilation, strict=True))


def conv_forward(x: np.ndarray, w: np.ndarray, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
                 out_spatial: Sizes | None = None) -> np.ndarray:
    """Cross-correlation of `x` (N, C, *spatial) with `w` (O, C/groups, *kernel).

    Args:
        out_spatial: number of positions to compute along each axis, if fewer than fit: for the gradient
            of a transposed convolution with output padding.
    """
    narrow = x.dtype if x.dtype in dtypes.NARROW else None
    if narrow is not None:
        x, w = dtypes.widen(x), dtypes.widen(w)
    kernel = w.shape[2:]
    spatial = tuple(out_spatial) if out_spatial is not None else output_size(x.shape[2:], kernel, stride,
                                                                             padding, dilation)
    n, o = x.shape[0], w.shape[0]
    out = np.empty((n, o, *spatial), np.result_type(x, w))
    if not out.size:
        pass
    elif not w.size:
        out.fill(0)
    elif w.shape[1] == 1 and o % groups == 0 and groups > 1:
        _depthwise_forward(x, w, stride, padding, dilation, groups, out)
    elif _is_pointwise(x, kernel, stride, padding, spatial):
        channels = x.shape[1] // groups
        np.matmul(w.reshape(groups, o // groups, channels), x.reshape(n, groups, channels, -1),
                  out=out.reshape(n, groups, o // groups, -1))
    else:
        matrix = w.reshape(groups, o // groups, -1)
        for images, rows, columns in _columns(x, kernel, spatial, stride, padding, dilation, groups):
            target = out[images, :, rows]  # (n, O, rows, ...)
            if target.shape[0] == 1:
                np.matmul(matrix, columns, out=target.reshape(groups, o // groups, -1)
                          if target.flags.c_contiguous else _flat_positions(target, groups))
            else:
                result = np.matmul(matrix, columns)
                target.swapaxes(0, 1)[...] = result.reshape(o, target.shape[0], *target.shape[2:])
    return out if narrow is None else dtypes.cast(out, narrow)


def conv_input_grad(g: np.ndarray, w: np.ndarray, input_spatial: Sizes, stride: Sizes, padding: Sizes,
                    dilation: Sizes, groups: int) -> np.ndarray:
    """The input gradient of a convolution, which is the transposed convolution of `g`.

    Args:
        g: (N, O, *positions).
        w: (O, C/groups, *kernel).
        input_spatial: the result's spatial sizes; for a transposed convolution `transposed_output_size`,
            which is where output padding enters.

    Returns:
        (N, C, *input_spatial).
    """
    narrow = g.dtype if g.dtype in dtypes.NARROW else None
    if narrow is not None:
        g, w = dtypes.widen(g), dtypes.widen(w)
    out = _input_grad(g, w, tuple(input_spatial), stride, padding, dilation, groups)
    return out if narrow is None else dtypes.cast(out, narrow)


def conv_weight_grad(g: np.ndarray, x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Sizes,
                     dilation: Sizes, groups: int) -> np.ndarray:
    """The weight gradient of a convolution: (O, C/groups, *kernel).

    Args:
        g: (N, O, *positions).
        x: (N, C, *spatial).
    """
    narrow = g.dtype if g.dtype in dtypes.NARROW else None
    if narrow is not None:
        g, x = dtypes.widen(g), dtypes.widen(x)
    kernel, spatial = tuple(kernel), g.shape[2:]
    n, o = g.shape[:2]
    channels = x.shape[1] // groups
    out = np.zeros((groups, o // groups, channels * prod(kernel)), np.result_type(g, x))
    if not (out.size and g.size):
        pass
    elif channels == 1 and groups > 1:
        _depthwise_weight_grad(g, x, kernel, stride, padding, dilation, groups, out)
    elif _is_pointwise(x, kernel, stride, padding, spatial):
        for image in range(n):
            out += np.matmul(g[image].reshape(groups, o // groups, -1),
                             x[image].reshape(groups, channels, -1).swapaxes(1, 2))
    else:
        for images, rows, columns in _columns(x, kernel, spatial, stride, padding, dilation, groups):
            part = g[images, :, rows].swapaxes(0, 1).reshape(groups, o // groups, -1)
            out += np.matmul(part, columns.swapaxes(1, 2))
    out = out.reshape(o, channels, *kernel)
    return out if narrow is None else dtypes.cast(out, narrow)


def _is_pointwise(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Sizes, spatial: Sizes) -> bool:
    """Whether the columns are the image itself, and wide enough for one GEMM an image."""
    return (max(kernel, default=1) == 1 and max(stride, default=1) == 1 and not any(padding)
            and prod(spatial) >= ENOUGH_POSITIONS // 2 and tuple(spatial) == x.shape[2:])


def _flat_positions(block: np.ndarray, groups: int) -> np.ndarray:
    """A view (groups, O/groups, positions) of one image's rows (1, O, rows, ...) in a larger image."""
    o = block.shape[1]
    return as_strided(block, (groups, o // groups, prod(block.shape[2:])),
                      (o // groups * block.strides[1], block.strides[1], block.strides[-1]))


def _blocks(n: int, spatial: Sizes, bytes_per_position: int) -> Iterator[tuple[slice, slice]]:
    """Cut the batch, or else each image's rows, so that a block's columns fit in the cache."""
    positions = prod(spatial)
    per_image = max(bytes_per_position * positions, 1)
    images = max(BLOCK_BYTES // per_image, min(-(-ENOUGH_POSITIONS // positions), LARGEST_BLOCK_BYTES // per_image))
    if images >= 1 or len(spatial) == 0:
        images = max(images, 1)
        for start in range(0, n, images):
            yield slice(start, min(start + images, n)), slice(None)
        return
    per_row = per_image // spatial[0]
    enough = -(-ENOUGH_POSITIONS * spatial[0] // positions)
    rows = min(max(BLOCK_BYTES // per_row, min(enough, LARGEST_BLOCK_BYTES // per_row), 1), spatial[0])
    for image in range(n):
        for start in range(0, spatial[0], rows):
            yield slice(image, image + 1), slice(start, min(start + rows, spatial[0]))


def windows_of(padded: np.ndarray, kernel: Sizes, spatial: Sizes, stride: Sizes, dilation: Sizes) -> np.ndarray:
    """A view (N, C, *kernel, *spatial) of every window of a padded (N, C, ...) array."""
    batch, channel, *steps = padded.strides
    return as_strided(padded, (*padded.shape[:2], *kernel, *spatial),
                      (batch, channel, *(step * d for step, d in zip(steps, dilation, strict=True)),
                       *(step * s for step, s in zip(steps, stride, strict=True))))


def _interior(padded: np.ndarray, padding: Sizes, spatial: Sizes) -> np.ndarray:
    at: tuple[Any, ...] = (..., *(slice(p, p + length) for p, length in zip(padding, spatial, strict=True)))
    return padded[at]


def _element(array: np.ndarray, lead: int, offset: tuple[int, ...]) -> np.ndarray:
    """A view of one kernel element, the kernel's axes coming after `lead` others."""
    at: tuple[Any, ...] = (*(slice(None),) * lead, *offset)
    return array[at]


def _padded(x: np.ndarray, padding: Sizes) -> np.ndarray:
    if not any(padding):
        return x
    padded = np.zeros((*x.shape[:2], *(length + 2 * p for length, p in zip(x.shape[2:], padding, strict=True))),
                      x.dtype)
    _interior(padded, padding, x.shape[2:])[...] = x
    return padded


def _columns(x: np.ndarray, kernel: Sizes, spatial: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
             groups: int) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Yield (images, rows, columns) with columns (groups, C/groups · K, positions of those images and rows).

    The columns' memory is used again for the next block.
    """
    n, c = x.shape[:2]
    depth = c * prod(kernel)
    memory = padded = np.empty(0, x.dtype)
    last = None
    for images, rows in _blocks(n, spatial, depth * x.itemsize):
        count = images.stop - images.start
        if images != last:
            last = images
            if not any(padding):
                padded = x[images]
            elif padded.shape[0] == count:  # the margin is zero already
                _interior(padded, padding, x.shape[2:])[...] = x[images]
            else:
                padded = _padded(x[images], padding)
            windows = windows_of(padded, kernel, spatial, stride, dilation)
        block = windows[(slice(None),) * (2 + len(kernel)) + (rows,)] if kernel else windows
        block = np.moveaxis(block, 0, 1 + len(kernel))  # (C, *kernel, n, rows, ...)
        if memory.size < block.size:
            memory = np.empty(block.size, x.dtype)
        columns = memory[:block.size].reshape(block.shape)
        np.copyto(columns, block)
        yield images, rows, columns.reshape(groups, depth // groups, -1)


def _input_grad(g: np.ndarray, w: np.ndarray, input_spatial: tuple[int, ...], stride: Sizes, padding: Sizes,
                dilation: Sizes, groups: int) -> np.ndarray:
    n, o, *positions = g.shape
    kernel = w.shape[2:]
    channels = w.shape[1]
    out = np.zeros((n, groups * channels, *input_spatial), np.result_type(g, w))
    if not (out.size and g.size and w.size):
        return out
    depthwise = channels == 1 and groups > 1
    if not depthwise and _is_pointwise(out, kernel, stride, padding, positions):
        matrix = w.reshape(groups, o // groups, channels).swapaxes(1, 2)
        np.matmul(matrix, g.reshape(n, groups, o // groups, -1), out=out.reshape(n, groups, channels, -1))
        return out
    if not depthwise and max(stride, default=1) == 1 and o <= 2 * groups * channels:
        # at stride 1 the transpose is a convolution with the flipped kernel, channels exchanged
        margins = tuple(d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True))
        if min(margins, default=0) >= 0 and output_size(positions, kernel, stride, margins,
                                                        dilation) == input_spatial:
            flipped = w[(slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))]
            flipped = flipped.reshape(groups, o // groups, channels, *kernel).swapaxes(1, 2)
            return conv_forward(g, flipped.reshape(groups * channels, o // groups, *kernel), stride, margins,
                                dilation, groups)
    # A kernel element's share of the gradient goes to every stride-th element from its own offset.
    # The slices end within the padded input, because positions were counted so that windows fit.
    padded_spatial = tuple(length + 2 * p for length, p in zip(input_spatial, padding, strict=True))
    matrix = w.reshape(groups, o // groups, -1).swapaxes(1, 2)
    last, padded = None, np.empty(0)
    for images, rows in _blocks(n, positions, groups * channels * prod(kernel) * out.itemsize):
        count = images.stop - images.start
        if images != last:
            if last is not None:
                out[last] = _interior(padded, padding, input_spatial)
            last = images
            padded = np.zeros((count, groups * channels, *padded_spatial), out.dtype)
        part = g[images, :, rows]
        first = rows.start or 0
        if depthwise:
            part = part.reshape(count, groups, o // groups, *part.shape[2:])
        else:
            share = np.matmul(matrix, part.swapaxes(0, 1).reshape(groups, o // groups, -1))
            share = share.reshape(groups * channels, *kernel, count, *part.shape[2:])
        sizes = part.shape[-len(positions):] if positions else ()
        for offset in product(*map(range, kernel)):
            starts = [at * d for at, d in zip(offset, dilation, strict=True)]
            if starts:
                starts[0] += first * stride[0]
            region = padded[(slice(None), slice(None),
                             *(slice(start, start + (size - 1) * s + 1, s)
                               for start, size, s in zip(starts, sizes, stride, strict=True)))]
            if depthwise:
                taps = _element(w[:, 0], 1, offset).reshape(groups, o // groups, *(1 for _ in kernel))
                region += (part * taps).sum(2, dtype=out.dtype) if o > groups else part[:, :, 0] * taps[:, 0]
            else:
                region += _element(share, 1, offset).swapaxes(0, 1)
    if last is not None:
        out[last] = _interior(padded, padding, input_spatial)
    return out


#: number of elements of all windows up to which a depthwise convolution is a GEMM
_SMALL_WINDOWS = 1 << 14


def _depthwise_forward(x: np.ndarray, w: np.ndarray, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
                       out: np.ndarray) -> None:
    """One input channel per group: a GEMM of depth K would be too thin, so shifted images are added up.

    Small images are one GEMM all the same, since each call of NumPy takes longer than they do.
    """
    n, spatial, kernel = x.shape[0], out.shape[2:], w.shape[2:]
    multiplier, depth = w.shape[0] // groups, prod(kernel)
    if n * groups * depth * prod(spatial) <= _SMALL_WINDOWS:
        windows = windows_of(_padded(x, padding), kernel, spatial, stride, dilation)
        np.matmul(w.reshape(groups, multiplier, depth), windows.reshape(n, groups, depth, -1),
                  out=out.reshape(n, groups, multiplier, -1))
        return
    out = out.reshape(n, groups, multiplier, *spatial)
    for images, _ in _blocks(n, (1,), w.shape[0] * prod(spatial) * x.itemsize):
        windows = windows_of(_padded(x[images], padding), kernel, spatial, stride, dilation)
        target = out[images]
        term = np.empty_like(target)
        for i, offset in enumerate(product(*map(range, kernel))):
            taps = _element(w[:, 0], 1, offset).reshape(groups, multiplier, *(1 for _ in kernel))
            shifted = _element(windows, 2, offset)[:, :, None]
            if i == 0:
                np.multiply(shifted, taps, out=target)
            else:
                np.multiply(shifted, taps, out=term)
                np.add(target, term, out=target)


def _depthwise_weight_grad(g: np.ndarray, x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Sizes,
                           dilation: Sizes, groups: int, out: np.ndarray) -> None:
    n, o, *spatial = g.shape
    taps = prod(kernel)
    if n * groups * taps * prod(spatial) <= _SMALL_WINDOWS:
        windows = windows_of(_padded(x, padding), kernel, tuple(spatial), stride, dilation)
        columns = windows.reshape(n, groups, taps, -1).swapaxes(2, 3)
        np.matmul(g.reshape(n, groups, o // groups, -1), columns).sum(0, out=out.reshape(groups, o // groups, taps))
        return
    out = out.reshape(groups, o // groups, *kernel)
    for images, _ in _blocks(n, (1,), o * prod(spatial) * x.itemsize):
        windows = windows_of(_padded(x[images], padding), kernel, spatial, stride, dilation)
        part = g[images].reshape(-1, groups, o // groups, *spatial)
        part = np.ascontiguousarray(np.moveaxis(part, 0, 2)).reshape(groups, o // groups, -1)
        for offset in product(*map(range, kernel)):
            shifted = np.moveaxis(_element(windows, 2, offset), 0, 1)
            _element(out, 2, offset)[...] += np.matmul(part, shifted.reshape(groups, -1, 1))[..., 0]
