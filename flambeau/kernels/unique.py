"""Unique values, by sorting: of an array, of consecutive elements, or of slices along an axis.

NaN differs from every value, itself included; the two zeros are one value, returned as the first one.
"""

from __future__ import annotations

import numpy as np

from .. import dtypes
from .sorting import argsort, order_keys, stable_order

#: integers within such a range are counted, whatever their number
SMALL_RANGE = 256

Unique = tuple[np.ndarray, np.ndarray, np.ndarray]


def unique(x: np.ndarray) -> Unique:
    """Sorted distinct values of `x`, each element's place among them (x's shape), and their counts."""
    flat = x.reshape(-1)
    counted = _unique_by_counting(flat) if flat.size and flat.dtype.kind in "iub" else None
    if counted is not None:
        values, inverse, counts = counted
        return values, inverse.reshape(x.shape), counts
    keys = order_keys(flat)
    order = stable_order(keys)
    ordered = keys.take(order)
    differs = ordered[1:] != ordered[:-1]
    if np.logical_and.reduce(differs):  # no two elements are equal, and there are no two NaNs
        inverse = np.empty(flat.size, np.int64)
        inverse[order] = np.arange(flat.size)
        return flat.take(order), inverse.reshape(x.shape), np.ones(flat.size, np.int64)
    if _has_distinguishable_ties(flat):
        order = argsort(flat, stable=False)
    starts, group = _runs(_run_starts(dtypes.widen(flat)[order]))
    inverse = np.empty(flat.shape, np.int64)
    inverse[order] = group
    return flat[order[starts]], inverse.reshape(x.shape), np.diff(starts, append=flat.size)


def _unique_by_counting(flat: np.ndarray) -> Unique | None:
    """`unique` of integers that lie close together, by one count for each number between them; None for others."""
    low, high = int(np.minimum.reduce(flat)), int(np.maximum.reduce(flat))
    if high - low >= max(SMALL_RANGE, 2 * flat.size) or high >= 1 << 63:
        return None
    places = flat.astype(np.int64)
    places -= low
    counts = np.bincount(places)
    present = counts.nonzero()[0]
    rank = np.zeros(counts.size, np.int64)
    rank[present] = np.arange(present.size)
    return (present + low).astype(flat.dtype), rank.take(places), counts[present]


def unique_slices(x: np.ndarray, axis: int) -> Unique:
    """Distinct slices along an axis in lexicographic order, each slice's place (flat), and counts."""
    moved = np.moveaxis(x, axis, 0)
    rows = moved.reshape(x.shape[axis], -1) if x.size else np.zeros((x.shape[axis], 0), x.dtype)
    order = np.lexsort(order_keys(rows).T[::-1]) if rows.shape[1] else np.arange(len(rows))
    starts, group = _runs(_run_starts(dtypes.widen(rows)[order]))
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = group
    values = np.moveaxis(moved[order[starts]], 0, axis)
    return values, inverse, np.diff(starts, append=len(rows))


def unique_consecutive(x: np.ndarray, axis: int | None = None) -> Unique:
    """One of each run of equal neighbours (or neighbouring slices), each element's run, and run lengths."""
    if axis is None:
        flat = x.reshape(-1)
        starts, group = _runs(_run_starts(dtypes.widen(flat)))
        return flat[starts], group.reshape(x.shape), np.diff(starts, append=flat.size)
    moved = np.moveaxis(x, axis, 0)
    rows = moved.reshape(x.shape[axis], -1) if x.size else np.zeros((x.shape[axis], 0), x.dtype)
    starts, group = _runs(_run_starts(dtypes.widen(rows)))
    return np.moveaxis(moved[starts], 0, axis), group, np.diff(starts, append=len(rows))


def _has_distinguishable_ties(x: np.ndarray) -> bool:
    """Whether the order of equal elements is observable: several NaNs, or zeros of both signs."""
    x = dtypes.widen(x)
    if x.dtype.kind != "f":
        return False
    signs = np.signbit(x[x == 0])
    return bool(np.count_nonzero(np.isnan(x)) > 1 or (signs.any() and not signs.all()))


def _run_starts(ordered: np.ndarray) -> np.ndarray:
    """Whether each element (or row) differs from the one before; the first does."""
    fresh = np.ones(ordered.shape[0], bool)
    differs = ordered[1:] != ordered[:-1]
    fresh[1:] = differs if ordered.ndim == 1 else differs.any(1)
    return fresh


def _runs(fresh: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where runs start, and each element's run."""
    return np.flatnonzero(fresh), np.cumsum(fresh) - 1
