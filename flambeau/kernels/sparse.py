"""Algorithms on the components of sparse arrays: sums over duplicate places, and compressed indices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .. import dtypes


def flatten_indices(indices: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The row-major number of each column of `indices` (dimensions, n) in an array of these sizes."""
    flat = np.zeros(indices.shape[1], np.int64)
    for row, size in zip(indices, sizes, strict=True):
        flat *= size
        flat += row
    return flat


def unflatten_indices(flat: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The inverse of `flatten_indices`."""
    result = np.empty((len(sizes), flat.size), np.int64)
    for d in range(len(sizes) - 1, -1, -1):
        if sizes[d]:
            flat, result[d] = np.divmod(flat, sizes[d])
    return result


def fits_flat(sizes: Sequence[int]) -> bool:
    """Whether row-major numbers of an array of these sizes fit in int64."""
    return prod(sizes) < 2**63


def sort_order(indices: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The stable order that sorts columns of indices lexicographically."""
    if fits_flat(sizes):
        return np.argsort(flatten_indices(indices, sizes), kind="stable")
    return np.lexsort(indices[::-1])


def sum_groups(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sums of consecutive rows of `values`, groups beginning at `starts`, none of which is empty."""
    if not starts.size:
        return values[:0]
    if values.dtype in dtypes.NARROW:  # each partial sum is rounded, as in PyTorch
        counts = np.diff(np.append(starts, values.shape[0]))
        sums = dtypes.widen(values[starts])
        for k in range(1, int(counts.max())):
            longer = np.flatnonzero(counts > k)
            partial = sums[longer] + dtypes.widen(values[starts[longer] + k])
            sums[longer] = dtypes.widen(dtypes.cast(partial, values.dtype))
        return dtypes.cast(sums, values.dtype)
    return np.add.reduceat(values, starts, axis=0, dtype=values.dtype)


def group_starts(columns: np.ndarray) -> np.ndarray:
    """Where each run of equal columns of sorted indices begins."""
    if not columns.shape[1]:
        return np.zeros(0, np.int64)
    if not columns.shape[0]:
        return np.zeros(1, np.int64)
    changes = (columns[:, 1:] != columns[:, :-1]).any(0)
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def coalesce(indices: np.ndarray, values: np.ndarray, sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Sorted and distinct indices, and the sums of the values at each.

    Args:
        indices: (dimensions, n).
        values: (n, *dense).
        sizes: of the sparse dimensions.
    """
    order = sort_order(indices, sizes) if indices.shape[0] else np.arange(values.shape[0])
    columns, rows = indices[:, order], values[order]
    starts = group_starts(columns)
    if starts.size == rows.shape[0]:
        return np.ascontiguousarray(columns), rows
    return np.ascontiguousarray(columns[:, starts]), sum_groups(rows, starts)


def compress(rows: np.ndarray, count: int, dtype: Any = np.int64) -> np.ndarray:
    """Compressed indices (count + 1,) of sorted row numbers."""
    result = np.zeros(count + 1, dtype)
    np.cumsum(np.bincount(rows, minlength=count), out=result[1:])
    return result


def decompress(compressed: np.ndarray) -> np.ndarray:
    """The row number of each element, from compressed indices (count + 1,)."""
    return np.repeat(np.arange(compressed.size - 1, dtype=compressed.dtype), np.diff(compressed))


def scatter_add(out: np.ndarray, flat: np.ndarray, values: np.ndarray) -> None:
    """Add rows of `values` to the rows `flat` of `out`, where numbers may repeat."""
    order = np.argsort(flat, kind="stable")
    numbers = flat[order]
    starts = group_starts(numbers[None])
    sums = values[order] if starts.size == numbers.size else sum_groups(values[order], starts)
    if out.dtype in dtypes.NARROW:
        places = numbers[starts]
        out[places] = dtypes.cast(dtypes.widen(out[places]) + dtypes.widen(sums), out.dtype)
    else:
        out[numbers[starts]] += dtypes.cast(sums, out.dtype)


__all__ = ["coalesce", "compress", "decompress", "fits_flat", "flatten_indices", "group_starts", "scatter_add",
           "sort_order", "sum_groups", "unflatten_indices"]
