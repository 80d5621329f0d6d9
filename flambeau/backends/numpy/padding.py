"""Borders that continue an array, mirrored or with its outermost elements, and what sends their gradients back.

Both go dimension by dimension, slab by slab: the border of a dimension is copied from what is there already, the
borders of the dimensions before it included. Backwards, slabs are added to where they were copied from, in the
opposite order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..compiled import copied, copy, room

Place = tuple[slice, ...]


def _widths(pad: tuple[int, ...], shape: tuple[int, ...]) -> tuple[list[tuple[int, int]], Place]:
    """How much is added before and after in each dimension, and what of the whole is left: negative widths cut."""
    widths, cut = [(0, 0)] * len(shape), [slice(None)] * len(shape)
    for i in range(len(pad) // 2):
        axis, before, after = len(shape) - 1 - i, pad[2 * i], pad[2 * i + 1]
        widths[axis] = (max(before, 0), max(after, 0))
        cut[axis] = slice(max(-before, 0), shape[axis] + sum(widths[axis]) - max(-after, 0))
    return widths, tuple(cut)


def _inside(shape: tuple[int, ...], widths: list[tuple[int, int]]) -> Place:
    """Where the input lies in the whole."""
    return tuple([slice(before, before + size) for size, (before, _) in zip(shape, widths, strict=True)])


def _slabs(shape: tuple[int, ...], widths: list[tuple[int, int]], mode: str) -> Iterator[tuple[Place, Place]]:
    """Which slabs of the border are copied from where, in an order in which that is written already."""
    inner = _inside(shape, widths)
    for axis, (size, (before, after)) in enumerate(zip(shape, widths, strict=True)):
        end = before + size
        lead, rest = (slice(None),) * axis, inner[axis + 1:]
        if mode == "edge":
            firsts, lasts = slice(before, before + 1), slice(end - 1, end)
        else:  # the nearest element stays where it is, the next ones are mirrored
            firsts = slice(2 * before, before, -1)
            lasts = slice(end - 2, end - 2 - after if after < size - 1 or before else None, -1)
        if before:
            yield (*lead, slice(before), *rest), (*lead, firsts, *rest)
        if after:
            yield (*lead, slice(end, None), *rest), (*lead, lasts, *rest)


def _simple(shape: tuple[int, ...], widths: list[tuple[int, int]], mode: str) -> bool:
    """Whether each slab of the border mirrors elements of the input alone, and there are some."""
    return 0 not in shape and (mode == "edge" or all(max(pair) < n for n, pair in zip(shape, widths, strict=True)))


def _bordered(x: Any, pad: tuple[int, ...], mode: str) -> Any:
    """`x` with its last dimensions continued, `mode` "reflect" or "edge"; negative widths cut."""
    widths, cut = _widths(pad, x.shape)
    whole = [size + sum(pair) for size, pair in zip(x.shape, widths, strict=True)]
    if not x.size:
        full = np.zeros(whole, x.dtype)
    elif not _simple(x.shape, widths, mode):
        full = np.pad(x, widths, mode)  # type: ignore[call-overload]
    else:
        full = room(whole, x.dtype)
        copy(full[_inside(x.shape, widths)], x)
        for slab, source in _slabs(x.shape, widths, mode):
            full[slab] = full[source]
    return np.ascontiguousarray(full[cut])


def _gather_border(x: Any, size: tuple[int, ...], pad: tuple[int, ...], mode: str) -> Any:
    """The transpose of `_bordered`: every element of the border added to the element it was continued from."""
    widths, cut = _widths(pad, size)
    if not _simple(size, widths, mode):
        whole = np.zeros(size, x.dtype)
        places = _bordered(np.arange(whole.size).reshape(size), pad, mode)
        np.add.at(whole.reshape(-1), places.reshape(-1), np.reshape(x, -1))
        return whole
    if min(pad, default=0) >= 0:
        full = copied(x)
    else:
        full = np.zeros([n + sum(pair) for n, pair in zip(size, widths, strict=True)], x.dtype)
        copy(full[cut], x)
    for slab, source in reversed(list(_slabs(size, widths, mode))):
        into, border = full[source], full[slab]
        for axis, (n, m) in enumerate(zip(into.shape, border.shape, strict=True)):
            if n != m:  # one row at the edge, for as many as there are
                border = np.add.reduce(border, axis, keepdims=True)
        into += border
    return copied(full[_inside(size, widths)])


PRIMITIVES = {"bordered": _bordered, "gather_border": _gather_border}
