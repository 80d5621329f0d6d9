"""Pooling: one vectorized pass over all outputs per window element.

The `k`-th elements of all windows are a strided view of the padded input, so that a window reduction is
a short loop over the kernel's elements with whole arrays inside. Planes are taken a block at a time so
that the views stay in the cache.

Arrays are laid out ``(*planes, *spatial)`` with ``len(kernel)`` spatial axes and any leading ones.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import dtypes

BLOCK_ELEMENTS = 1 << 17
FEW_WINDOWS = 2048  # up to which the tables of a geometry are kept
LARGE_WINDOW = 64  # from this many elements on, NumPy's reduction over a window is faster

Sizes = Sequence[int]


def pool_output_size(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                     ceil_mode: bool) -> tuple[int, ...]:
    """Spatial sizes of a pooling's output.

    With `ceil_mode` a last, partial window counts if it starts inside the input or its left padding.
    """
    sizes = []
    for length, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True):
        free = length + 2 * p - d * (k - 1) - 1
        size = (free + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (size - 1) * s >= length + p:
            size -= 1
        sizes.append(size)
    return tuple(sizes)


def max_pool(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
             ceil_mode: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Each window's maximum and its flat index within the plane.

    Of equal elements the first is chosen; of NaNs, which beat every number, the last.

    Returns:
        values (*planes, *out) of x's dtype, indices (*planes, *out) int64.
    """
    spatial, lead = x.shape[x.ndim - len(kernel):], x.shape[:x.ndim - len(kernel)]
    out = pool_output_size(spatial, kernel, stride, padding, dilation, ceil_mode)
    planes = x.reshape(prod(lead), *spatial)
    indices, values = np.empty((planes.shape[0], *out), np.int64), np.empty((planes.shape[0], *out), x.dtype)
    if indices.size:
        lowest = _lowest(x.dtype)
        offsets = list(product(*map(range, kernel)))
        steps = _row_major_steps(spatial)
        table = np.array([0, *(sum(o * d * step for o, d, step in zip(offset, dilation, steps, strict=True))
                               for offset in reversed(offsets))], np.int64)  # by place counted from the last
        starts = [np.arange(size) * s - p for size, s, p in zip(out, stride, padding, strict=True)]
        base = _flat_grid(starts, steps)
        code = np.uint8 if len(offsets) < 256 else np.int32
        outside = _margins(spatial, out, kernel, stride, padding, dilation) is not None
        for block in _plane_blocks(planes):
            source = dtypes.widen(planes[block])
            views = _element_views(source, out, kernel, stride, padding, dilation, lowest)
            chosen = indices[block]
            np.add(table.take(_winner(views, offsets, code)), base, out=chosen)
            if outside:
                first = [np.where(start < 0, start + -(start // d) * d, start)
                         for start, d in zip(starts, dilation, strict=True)]
                best = _maximum(views, offsets)
                np.copyto(chosen, _flat_grid(first, steps), where=best == lowest)
            values[block] = _gather(planes[block], chosen)
    return values.reshape(*lead, *out), indices.reshape(*lead, *out)


def max_pool_backward(g: np.ndarray, indices: np.ndarray, spatial: Sizes, overlapping: bool = True) -> np.ndarray:
    """Max pooling's gradient: each window's gradient goes to the element it chose, (*planes, *spatial).

    Args:
        g, indices: (*planes, *out), as `max_pool` and `adaptive_max_pool` return.
        overlapping: whether two windows may have chosen one element.
    """
    lead = g.shape[:g.ndim - len(spatial)]
    count, size = prod(lead), prod(spatial)
    if 0 < g.size <= FEW_WINDOWS and g.dtype.kind == "f" and g.itemsize > 2:
        positions = (indices.reshape(count, -1) + _starts(count, size)).reshape(-1)
        gradient = np.zeros((*lead, *spatial), g.dtype)
        if overlapping:
            np.add.at(gradient.reshape(-1), positions, g.reshape(-1))
        else:
            gradient.reshape(-1)[positions] = g.reshape(-1)
        return gradient
    narrow = g.dtype if g.dtype in dtypes.NARROW else None
    source = dtypes.widen(g).reshape(-1)
    positions = (indices.reshape(count, -1) + (np.arange(count) * size)[:, None]).reshape(-1) \
        if g.size else np.empty(0, np.int64)
    out = np.zeros(count * size, source.dtype)
    if overlapping:
        np.add.at(out, positions, source)
    else:
        out[positions] = source
    out = out.reshape(*lead, *spatial)
    return out if narrow is None else dtypes.cast(out, narrow)


@functools.lru_cache(512)
def _starts(count: int, size: int) -> np.ndarray:
    """The flat positions of the first elements of planes, as a column."""
    return (np.arange(count) * size)[:, None]


def avg_pool(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: int | None = None) -> np.ndarray:
    """Each window's sum over its size (or over `divisor_override`): (*planes, *out).

    The size is the window's, clipped to the padded input, or to the input without `count_include_pad`.
    Integers are divided towards zero.
    """
    d = len(kernel)
    spatial, lead = x.shape[x.ndim - d:], x.shape[:x.ndim - d]
    ones = (1,) * d
    out = pool_output_size(spatial, kernel, stride, padding, ones, ceil_mode)
    narrow = x.dtype if x.dtype in dtypes.NARROW else None
    planes = x.reshape(prod(lead), *spatial)
    result = np.zeros((planes.shape[0], *out), np.float32 if narrow else x.dtype)
    if result.size:
        divisor = _divisor(spatial, out, kernel, stride, padding, count_include_pad, divisor_override)
        divisor = divisor.astype(result.dtype)
        offsets = list(product(*map(range, kernel)))
        for block in _plane_blocks(planes):
            views = _element_views(dtypes.widen(planes[block]), out, kernel, stride, padding, ones, 0)
            total = result[block]
            if len(offsets) >= LARGE_WINDOW:
                views.sum(tuple(range(1, d + 1)), out=total)
            else:
                for offset in offsets:
                    np.add(total, _element(views, offset), out=total)
            if total.dtype.kind in "iu":
                total[...] = _divide_towards_zero(total, divisor)
            else:
                np.divide(total, divisor, out=total)
    result = result.reshape(*lead, *out)
    return result if narrow is None else dtypes.cast(result, narrow)


def avg_pool_backward(g: np.ndarray, spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
                      count_include_pad: bool = True, divisor_override: int | None = None) -> np.ndarray:
    """The transpose of `avg_pool`: each window's gradient, over its divisor, to every element in it."""
    d = len(kernel)
    out, lead = g.shape[g.ndim - d:], g.shape[:g.ndim - d]
    if g.size * prod(kernel) <= FEW_WINDOWS and g.dtype.kind == "f" and g.itemsize > 2 and g.size:
        divisor, targets, sources, inside = _shares(prod(lead), tuple(spatial), out, tuple(kernel), tuple(stride),
                                                    tuple(padding), count_include_pad, divisor_override, g.dtype)
        gradient = np.zeros(inside[0], g.dtype)
        shares = (g.reshape(-1, *out) / divisor).take(sources)
        if all(k <= s for k, s in zip(kernel, stride, strict=True)):
            shares += 0.0  # added to 0, there is no -0
            gradient.reshape(-1)[targets] = shares
        else:
            np.add.at(gradient.reshape(-1), targets, shares)
        return (gradient if inside[1] is None else gradient[inside[1]].copy()).reshape(*lead, *spatial)
    narrow = g.dtype if g.dtype in dtypes.NARROW else None
    planes = g.reshape(prod(lead), *out)
    result = np.zeros((planes.shape[0], *spatial), np.float32 if narrow else g.dtype)
    if planes.size and result.size:
        divisor = _divisor(spatial, out, kernel, stride, padding, count_include_pad,
                           divisor_override).astype(result.dtype)
        ones = (1,) * d
        margins = _margins(spatial, out, kernel, stride, padding, ones)
        disjoint = all(k <= s for k, s in zip(kernel, stride, strict=True))
        for block in _plane_blocks(result):
            share = dtypes.widen(planes[block]) / divisor
            share += 0.0  # added to 0, there is no -0
            target = result[block]
            padded = target if margins is None else np.zeros(
                (target.shape[0], *(sum(m) + length for m, length in zip(margins, spatial, strict=True))),
                result.dtype)
            views = _view_elements(padded, out, kernel, stride, ones)
            if disjoint:
                views[...] = np.expand_dims(share, tuple(range(1, d + 1)))
            else:  # the windows of an element are added in their order, as PyTorch adds them
                for offset in reversed(list(product(*map(range, kernel)))):
                    view = _element(views, offset)
                    np.add(view, share, out=view)
            if margins is not None:
                target[...] = padded[(slice(None), *(slice(left, left + length) for (left, _), length
                                                     in zip(margins, spatial, strict=True)))]
    result = result.reshape(*lead, *spatial)
    return result if narrow is None else dtypes.cast(result, narrow)


@functools.lru_cache(512)
def _shares(planes: int, spatial: tuple[int, ...], out: tuple[int, ...], kernel: tuple[int, ...],
            stride: tuple[int, ...], padding: tuple[int, ...], count_include_pad: bool, divisor_override: int | None,
            dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[tuple[int, ...], Any]]:
    """The tables of an average pooling's gradient.

    Returns:
        each window's divisor; the flat positions in padded planes of the windows' elements, and the windows that they
        belong to; (the padded planes' shape, the slices of the planes in them).
    """
    ones = (1,) * len(kernel)
    divisor = _divisor(spatial, out, kernel, stride, padding, count_include_pad, divisor_override).astype(dtype)
    margins = _margins(spatial, out, kernel, stride, padding, ones)
    shape, inside = (planes, *spatial), None
    if margins is not None:
        shape = (planes, *(sum(m) + length for m, length in zip(margins, spatial, strict=True)))
        inside = (slice(None), *(slice(left, left + length)
                                 for (left, _), length in zip(margins, spatial, strict=True)))
    places = _view_elements(np.arange(prod(shape)).reshape(shape), out, kernel, stride, ones)
    numbers = np.broadcast_to(np.arange(planes * prod(out)).reshape(planes, *ones, *out), places.shape)
    backwards: Any = (slice(None), *(slice(None, None, -1) for _ in kernel))
    return divisor, places[backwards].reshape(-1), numbers[backwards].reshape(-1), (shape, inside)


def adaptive_avg_pool(x: np.ndarray, out: Sizes) -> np.ndarray:
    """Mean over windows ``floor(i·L/out) .. ceil((i+1)·L/out)`` an axis: (*planes, *out)."""
    d = len(out)
    narrow = x.dtype if x.dtype in dtypes.NARROW else None
    total = _adaptive_sum(dtypes.widen(x), out)
    for axis, (length, size) in enumerate(zip(x.shape[x.ndim - d:], out, strict=True)):
        start, end = _adaptive_bounds(length, size)
        total /= (end - start).astype(total.dtype).reshape(-1, *(1,) * (d - 1 - axis))
    return total if narrow is None else dtypes.cast(total, narrow)


def adaptive_avg_pool_backward(g: np.ndarray, spatial: Sizes) -> np.ndarray:
    """The transpose of `adaptive_avg_pool`: (*planes, *spatial).

    The outputs that element `j` reaches are ``floor(j·out/L) .. ceil((j+1)·out/L)``: the same windows,
    sizes exchanged, so that the transpose gathers instead of scattering.
    """
    d = len(spatial)
    narrow = g.dtype if g.dtype in dtypes.NARROW else None
    share = dtypes.widen(g).copy()
    for axis, (length, size) in enumerate(zip(spatial, g.shape[g.ndim - d:], strict=True)):
        start, end = _adaptive_bounds(length, size)
        share /= (end - start).astype(share.dtype).reshape(-1, *(1,) * (d - 1 - axis))
    result = _adaptive_sum(share, spatial)
    return result if narrow is None else dtypes.cast(result, narrow)


def adaptive_max_pool(x: np.ndarray, out: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Maximum over the windows of `adaptive_avg_pool`, and its flat index within the plane."""
    d = len(out)
    spatial, lead = x.shape[x.ndim - d:], x.shape[:x.ndim - d]
    if all(size and length % size == 0 for length, size in zip(spatial, out, strict=True)):
        kernel = tuple(length // size for length, size in zip(spatial, out, strict=True))
        return max_pool(x, kernel, kernel, (0,) * d, (1,) * d)
    planes = x.reshape(prod(lead), prod(spatial))
    indices = np.empty((planes.shape[0], prod(out)), np.int64)
    if indices.size:
        source = dtypes.widen(planes)
        elements = _adaptive_elements(spatial, out)
        _, indices[...] = next(elements)
        best = source.take(indices[0], 1)
        for _, flat in elements:
            # windows shorter than the longest repeat their last element, which has no effect
            value = source.take(flat, 1)
            better = value > best
            if value.dtype.kind == "f":
                better |= np.isnan(value)
            np.copyto(best, value, where=better)
            np.copyto(indices, flat, where=better)
    values = _gather(planes, indices)
    return values.reshape(*lead, *out), indices.reshape(*lead, *out)


def max_unpool(x: np.ndarray, indices: np.ndarray, out: Sizes) -> np.ndarray:
    """Zeros (*planes, *out) with each value at its flat index within the plane.

    Raises:
        RuntimeError: an index is outside the plane.
    """
    lead = x.shape[:x.ndim - len(out)]
    size = prod(out)
    planes = indices.reshape(prod(lead), -1) if indices.size else indices.reshape(prod(lead), 0)
    wrong = (planes < 0) | (planes >= size)
    if wrong.any():
        raise RuntimeError(f"Found an invalid max index: {planes[wrong][0]} (output volumes are of size "
                           f"{'x'.join(map(str, out))})")
    result = np.zeros((planes.shape[0], size), x.dtype)
    np.put_along_axis(result, planes, x.reshape(planes.shape), 1)
    return result.reshape(*lead, *out)


def _lowest(dtype: np.dtype) -> object:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _row_major_steps(spatial: Sizes) -> list[int]:
    return [prod(spatial[axis + 1:]) for axis in range(len(spatial))]


def _flat_grid(coordinates: list[np.ndarray], steps: list[int]) -> np.ndarray:
    """Flat indices (*out) of the grid that the axes' coordinates span."""
    flat = np.zeros((), np.int64)
    for coordinate, step in zip(coordinates, steps, strict=True):
        flat = flat[..., None] + coordinate * step
    return flat


def _gather(planes: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The elements at flat indices within each plane."""
    size = prod(planes.shape[1:])
    starts = (np.arange(planes.shape[0]) * size).reshape(-1, *(1,) * (indices.ndim - 1))
    return planes.reshape(-1).take(indices + starts)


def _plane_blocks(planes: np.ndarray) -> Iterator[slice]:
    count = max(BLOCK_ELEMENTS // max(prod(planes.shape[1:]), 1), 1)
    for start in range(0, planes.shape[0], count):
        yield slice(start, start + count)


def _margins(spatial: Sizes, out: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
             dilation: Sizes) -> list[tuple[int, int]] | None:
    """The extents of windows beyond the input before and after it, or None if there are none."""
    margins = [(p, max((size - 1) * s + d * (k - 1) + 1 - p - length, 0))
               for length, size, k, s, p, d in zip(spatial, out, kernel, stride, padding, dilation, strict=True)]
    return margins if any(map(any, margins)) else None


def _view_elements(padded: np.ndarray, out: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> np.ndarray:
    """A view (planes, *kernel, *out) of all windows, writable where `padded` is."""
    plane, *steps = padded.strides
    return as_strided(padded, (padded.shape[0], *kernel, *out),
                      (plane, *(step * d for step, d in zip(steps, dilation, strict=True)),
                       *(step * s for step, s in zip(steps, stride, strict=True))))


def _element(views: np.ndarray, offset: tuple[int, ...]) -> np.ndarray:
    """A view (planes, *out) of one element of every window."""
    at: tuple[Any, ...] = (slice(None), *offset)
    return views[at]


def _element_views(source: np.ndarray, out: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                   fill: object) -> np.ndarray:
    spatial = source.shape[1:]
    margins = _margins(spatial, out, kernel, stride, padding, dilation)
    if margins is not None:
        padded = np.full((source.shape[0], *(sum(m) + length for m, length in zip(margins, spatial, strict=True))),
                         fill, source.dtype)
        padded[(slice(None), *(slice(left, left + length)
                               for (left, _), length in zip(margins, spatial, strict=True)))] = source
        source = padded
    return _view_elements(source, out, kernel, stride, dilation)


def _maximum(views: np.ndarray, offsets: list[tuple[int, ...]]) -> np.ndarray:
    best = _element(views, offsets[0]).copy()
    for offset in offsets[1:]:
        np.maximum(best, _element(views, offset), out=best)
    return best


def _winner(views: np.ndarray, offsets: list[tuple[int, ...]], code: type) -> np.ndarray:
    """Which window element is the maximum, counted from the last: the first of equals, the last of NaNs.

    The maximum's place is itself a maximum, of ``(n - i) · [element i is the maximum]``: that stays in
    small integers and vectorises, where a masked copy does not.
    """
    best = _maximum(views, offsets)
    count = len(offsets)
    which: np.ndarray = np.zeros(best.shape, code)
    rank: np.ndarray = np.empty(best.shape, code)
    found = np.empty(best.shape, bool)
    for i, offset in enumerate(offsets):
        np.equal(_element(views, offset), best, out=found)
        np.multiply(found.view(np.uint8), code(count - i), out=rank)
        np.maximum(which, rank, out=which)
    if best.dtype.kind == "f" and np.isnan(best).any():
        for i, offset in enumerate(offsets):
            np.copyto(which, code(count - i), where=np.isnan(_element(views, offset)))
    return which


def _divisor(spatial: Sizes, out: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, count_include_pad: bool,
             override: int | None) -> np.ndarray:
    """Each window's divisor (*out)."""
    if override is not None:
        return np.full((1,) * len(out), override)
    divisor = np.ones((), np.int64)
    for length, size, k, s, p in zip(spatial, out, kernel, stride, padding, strict=True):
        start = np.arange(size) * s - p
        end = np.minimum(start + k, length + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, length)
        divisor = divisor[..., None] * np.maximum(end - start, 1)
    return divisor


def _divide_towards_zero(total: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    quotient = np.abs(total) // np.abs(divisor)
    return np.where((total < 0) != (divisor < 0), -quotient, quotient)


def _adaptive_bounds(length: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    i = np.arange(size)
    return i * length // max(size, 1), -((-(i + 1) * length) // max(size, 1))


def _adaptive_elements(spatial: Sizes, out: Sizes) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (valid, flat), both (prod(out),): the k-th element of every window, clipped to its last one."""
    bounds = [_adaptive_bounds(length, size) for length, size in zip(spatial, out, strict=True)]
    steps = _row_major_steps(spatial)
    for offset in product(*(range(int((end - start).max())) for start, end in bounds)):
        places = [start + o for (start, _), o in zip(bounds, offset, strict=True)]
        valid = np.ones((), bool)
        for place, (_, end) in zip(places, bounds, strict=True):
            valid = valid[..., None] & (place < end)
        clipped = [np.minimum(place, end - 1) for place, (_, end) in zip(places, bounds, strict=True)]
        yield valid.reshape(-1), _flat_grid(clipped, steps).reshape(-1)


def _adaptive_sum(x: np.ndarray, out: Sizes) -> np.ndarray:
    d = len(out)
    spatial, lead = x.shape[x.ndim - d:], x.shape[:x.ndim - d]
    if x.size and all(size and length % size == 0 for length, size in zip(spatial, out, strict=True)):
        kernel = tuple(length // size for length, size in zip(spatial, out, strict=True))
        return avg_pool(x, kernel, kernel, (0,) * d, divisor_override=1)
    planes = x.reshape(prod(lead), prod(spatial))
    total = np.zeros((planes.shape[0], prod(out)), x.dtype)
    if total.size and planes.size:
        for valid, flat in _adaptive_elements(spatial, out):
            value = planes.take(flat, 1)
            if valid.all():
                total += value
            else:
                np.add(total, value, out=total, where=valid)
    return total.reshape(*lead, *out)
