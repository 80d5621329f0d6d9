"""Sorting and selection along an axis, with PyTorch's order and its choice among equal elements.

Every dtype is first mapped to integer keys of the same order — NaN above all numbers, the two zeros equal,
complemented for descending — so that one fast integer sort serves all dtypes. A stable sort of 32-bit keys
packs key and index into one 64-bit integer; with wider keys, the order of a fast unstable sort is corrected
where keys repeat.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import dtypes
from . import ties

SHORT = 24  # along shorter axes NumPy's stable sort is as fast for 32-bit keys
SHORT_WIDE = 256  # and here for 64-bit keys


def order_keys(x: np.ndarray, descending: bool = False) -> np.ndarray:
    """Integers that compare as the elements of `x` do, or inversely if descending."""
    x = dtypes.widen(x)
    if x.dtype.kind == "b":
        keys = x.view(np.uint8)
    elif x.dtype.kind == "f":
        signed = np.int32 if x.dtype == np.float32 else np.int64
        limits = np.iinfo(signed)
        bits: np.ndarray = np.ascontiguousarray(x + 0.0, x.dtype).view(signed)  # + 0.0 makes -0.0 the other zero
        keys = bits ^ ((bits >> (limits.bits - 1)) & limits.max)
        nan = np.isnan(x)
        if nan.any():
            keys = np.where(nan, signed(limits.max), keys)
    else:
        keys = x
    return ~keys if descending else keys


def stable_order(keys: np.ndarray) -> np.ndarray:
    """Indices (int64) that sort integer keys along the last axis, equal ones in their own order."""
    n = keys.shape[-1] if keys.ndim else 1
    if n < (SHORT if keys.dtype.itemsize == 4 else SHORT_WIDE) or keys.dtype.itemsize <= 2 or n > 1 << 31:
        return np.argsort(keys, -1, kind="stable").astype(np.int64, copy=False)
    if keys.dtype.itemsize == 4:
        places = keys.astype(np.int64, "C")
        if keys.dtype.kind == "u":
            places -= 1 << 31
        places <<= 32
        places |= np.arange(n)
        places.sort(-1)
        places &= 0xFFFFFFFF
        return places
    order = np.argsort(keys, -1).astype(np.int64, copy=False)
    ordered = np.take_along_axis(keys, order, -1)
    fresh = ordered[..., 1:] != ordered[..., :-1]
    if fresh.all():
        return order
    packed = np.zeros(keys.shape, np.uint64)
    np.cumsum(fresh, -1, dtype=np.uint64, out=packed[..., 1:])
    packed <<= np.uint64(32)
    packed |= order.view(np.uint64)
    packed.sort(-1)
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _take_last_axis(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    """`np.take_along_axis` along the last axis, in fewer steps."""
    if x.ndim == 1:
        return x.take(index)
    if not x.size:
        return np.take_along_axis(x, index, -1)
    flat = np.ascontiguousarray(x).reshape(-1)
    rows = np.arange(0, flat.size, x.shape[-1]).reshape(*x.shape[:-1], 1)
    return flat.take(index + rows)


def _to_last(x: np.ndarray, axis: int) -> np.ndarray:
    """A view with an axis moved to the end, the order of the others kept."""
    axis %= x.ndim
    return x if axis == x.ndim - 1 else x.transpose(*range(axis), *range(axis + 1, x.ndim), axis)


def argsort(x: np.ndarray, axis: int = -1, descending: bool = False, stable: bool = True) -> np.ndarray:
    """Indices that sort `x` along an axis.

    Args:
        stable: equal elements keep their order, in both directions; else they have the order of PyTorch's
            unstable sort, which takes longer to compute where there are any.
    """
    if x.ndim == 0:
        return np.zeros((), np.int64)
    keys = order_keys(x, descending).swapaxes(axis, -1)
    order = stable_order(keys)
    if not stable and keys.shape[-1] > ties.INSERTION:
        ordered = _take_last_axis(keys, order)
        for slice_ in _slices((ordered[..., 1:] == ordered[..., :-1]).any(-1)):
            order[slice_] = ties.sorted_places(_signed(keys[slice_]))
    return order.swapaxes(axis, -1)


def sort(x: np.ndarray, axis: int = -1, descending: bool = False,
         stable: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Sorted values and the indices they came from, as `argsort` gives them."""
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    order = argsort(x, axis, descending, stable)
    values = _take_last_axis(x.swapaxes(axis, -1), order.swapaxes(axis, -1))
    return values.swapaxes(axis, -1), order


def topk(x: np.ndarray, k: int, axis: int = -1, largest: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The k largest (smallest) elements along an axis, best first, and their indices.

    Where a value is repeated the indices are PyTorch's; without repetition any algorithm finds the same.
    """
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    moved = x.swapaxes(axis, -1)
    keys = order_keys(x, largest).swapaxes(axis, -1)
    n = keys.shape[-1]
    if k == 0 or not keys.size:
        order = np.zeros((*keys.shape[:-1], k), np.int64)
    elif 4 * k < n and n > SHORT_WIDE:
        near = np.argpartition(keys, k - 1, -1)[..., :k]
        within = np.argsort(_take_last_axis(keys, near), -1)
        order = _take_last_axis(near, within)
    else:
        order = stable_order(keys)[..., :k]
    if order.size and n > 1:
        chosen = _take_last_axis(keys, order)
        last = chosen[..., -1:]
        tied = (chosen[..., 1:] == chosen[..., :-1]).any(-1)
        tied |= (keys == last).sum(-1) > (chosen == last).sum(-1)
        if tied.any():
            order = np.ascontiguousarray(order, np.int64)
            for slice_ in _slices(tied):
                order[slice_] = ties.topk_places(_signed(keys[slice_]), k)
    values = _take_last_axis(moved, order)
    return values.swapaxes(axis, -1), order.astype(np.int64, copy=False).swapaxes(axis, -1)


def kthvalue(x: np.ndarray, k: int, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """The k-th smallest element (from 1) along an axis, which is removed, and its index, PyTorch's among equals."""
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    keys = _to_last(order_keys(x), axis)
    order = np.argpartition(keys, k - 1, -1)[..., k - 1:k]
    tied = np.add.reduce(keys == _take_last_axis(keys, order), -1, np.intp) > 1
    index = np.array(order[..., 0], np.int64)
    for slice_ in _slices(tied):
        index[slice_] = ties.kth_place(_signed(keys[slice_]), k - 1)
    return _take(x, index, axis), index


def median(x: np.ndarray, axis: int = -1, ignore_nan: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The lower median along an axis, which is removed, and its index.

    A NaN in the slice is its median, unless NaNs are ignored; a slice of NaNs alone gives NaN either way.
    """
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    keys = _to_last(order_keys(x), axis)
    n = keys.shape[-1]
    order = stable_order(keys)
    middle = (n - 1) // 2
    floating = dtypes.widen(x)
    is_nan = np.isnan(floating) if floating.dtype.kind == "f" else None
    if is_nan is None or not np.logical_or.reduce(is_nan, None):
        index = np.array(order[..., middle])
        return _take(x, index, axis), index
    nan = _to_last(is_nan, axis).sum(-1)
    numbers = n - nan
    rank = np.maximum(numbers - 1, 0) // 2 if ignore_nan else np.where(nan > 0, numbers, middle)
    index = _take_last_axis(order, rank[..., None])[..., 0]
    return _take(x, index, axis), index


def mode(x: np.ndarray, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent value along an axis, the smallest of several, and an index of it; the axis is removed.

    NaNs differ from each other: each is counted once.
    """
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    keys = _to_last(order_keys(x), axis)
    values = _to_last(dtypes.widen(x), axis)
    n = keys.shape[-1]
    order = stable_order(keys)
    ordered = _take_last_axis(values, order)
    fresh = np.ones(keys.shape, bool)
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=fresh[..., 1:])
    start = np.maximum.accumulate(np.where(fresh, np.arange(n), 0), -1)
    end = np.argmax(np.arange(n) - start, -1)  # a longest run's last element, in the first such run
    index = np.array(_take_last_axis(order, end[..., None])[..., 0])
    if n > ties.INSERTION:
        length = end - _take_last_axis(start, end[..., None])[..., 0]
        for slice_ in _slices(length > 0):
            row = _signed(keys[slice_])
            index[slice_] = ties.last_of_run(row, int(row[index[slice_]]))
    return _take(x, index, axis), index


def _slices(mask: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Indices of the slices where the mask is true; the only slice of a vector is ``()``."""
    if np.ndim(mask):
        return zip(*np.nonzero(mask), strict=True)
    return iter(((),) if mask else ())


def _signed(keys: np.ndarray) -> np.ndarray:
    """Keys as int64 in the same order."""
    if keys.dtype == np.uint64:
        return (keys ^ np.uint64(1 << 63)).view(np.int64)
    return keys.astype(np.int64)


def _take(x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    return _take_last_axis(_to_last(x, axis), index[..., None])[..., 0]
