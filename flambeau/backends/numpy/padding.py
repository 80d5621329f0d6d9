"""Reflection and replication padding on arrays, and their transposes.

Both proceed dimension by dimension, slab by slab: the border of a dimension is copied from the part already written,
which includes the borders of the dimensions before. The transpose adds slabs to their sources in reverse order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..compiled import border_pad, copy, empty_array, new_copy
from .memory import moving_bits

Key = tuple[slice, ...]


def _widths(pad: tuple[int, ...], shape: tuple[int, ...]) -> tuple[list[tuple[int, int]], Key]:
    """Return the widths added before and after each dimension, and the key that crops negative widths."""
    widths, cut = [(0, 0)] * len(shape), [slice(None)] * len(shape)
    for i in range(len(pad) // 2):
        axis, before, after = len(shape) - 1 - i, pad[2 * i], pad[2 * i + 1]
        widths[axis] = (max(before, 0), max(after, 0))
        cut[axis] = slice(max(-before, 0), shape[axis] + sum(widths[axis]) - max(-after, 0))
    return widths, tuple(cut)


def _inside(shape: tuple[int, ...], widths: list[tuple[int, int]]) -> Key:
    """Return the key of the input within the padded array."""
    return tuple([slice(before, before + size) for size, (before, _) in zip(shape, widths, strict=True)])


def _slabs(shape: tuple[int, ...], widths: list[tuple[int, int]], mode: str) -> Iterator[tuple[Key, Key]]:
    """Yield the keys of the border's slabs and of their sources, in an order in which sources are written already."""
    inner = _inside(shape, widths)
    for axis, (size, (before, after)) in enumerate(zip(shape, widths, strict=True)):
        end = before + size
        lead, rest = (slice(None),) * axis, inner[axis + 1:]
        if mode == "edge":
            firsts, lasts = slice(before, before + 1), slice(end - 1, end)
        else:  # reflection does not repeat the edge element
            firsts = slice(2 * before, before, -1)
            lasts = slice(end - 2, end - 2 - after if after < size - 1 or before else None, -1)
        if before:
            yield (*lead, slice(before), *rest), (*lead, firsts, *rest)
        if after:
            yield (*lead, slice(end, None), *rest), (*lead, lasts, *rest)


def _is_slab_copy(shape: tuple[int, ...], widths: list[tuple[int, int]], mode: str) -> bool:
    """Return whether each slab of the border is a copy of elements of the nonempty input."""
    return 0 not in shape and (mode == "edge" or all(max(pair) < n for n, pair in zip(shape, widths, strict=True)))


def _border_pad(x: Any, pad: tuple[int, ...], mode: str) -> Any:
    """Return `x` with its last dimensions padded, `mode` "reflect" or "edge"; negative widths crop."""
    padded = border_pad(x, pad, mode)
    if padded is not None:
        return padded
    widths, cut = _widths(pad, x.shape)
    padded_shape = [size + sum(pair) for size, pair in zip(x.shape, widths, strict=True)]
    if not x.size:
        full = np.zeros(padded_shape, x.dtype)
    elif not _is_slab_copy(x.shape, widths, mode):
        full = np.pad(x, widths, mode)  # type: ignore[call-overload]
    else:
        full = empty_array(padded_shape, x.dtype)
        copy(full[_inside(x.shape, widths)], x)
        for slab, source in _slabs(x.shape, widths, mode):
            full[slab] = full[source]
    return np.ascontiguousarray(full[cut])


def _border_pad_backward(x: Any, size: tuple[int, ...], pad: tuple[int, ...], mode: str) -> Any:
    """Return the transpose of `_border_pad`: each element of the border is added to its source."""
    widths, cut = _widths(pad, size)
    if not _is_slab_copy(size, widths, mode):
        out = np.zeros(size, x.dtype)
        positions = _border_pad(np.arange(out.size).reshape(size), pad, mode)
        np.add.at(out.reshape(-1), positions.reshape(-1), np.reshape(x, -1))
        return out
    if min(pad, default=0) >= 0:
        full = new_copy(x)
    else:
        full = np.zeros([n + sum(pair) for n, pair in zip(size, widths, strict=True)], x.dtype)
        copy(full[cut], x)
    for slab, source in reversed(list(_slabs(size, widths, mode))):
        target, border = full[source], full[slab]
        for axis, (n, m) in enumerate(zip(target.shape, border.shape, strict=True)):
            if n != m:  # the edge is the source of several rows
                border = np.add.reduce(border, axis, keepdims=True)
        target += border
    return new_copy(full[_inside(size, widths)])


PRIMITIVES = {"border_pad": moving_bits(_border_pad), "border_pad_backward": _border_pad_backward}
