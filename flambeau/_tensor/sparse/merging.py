"""Sums of COO tensors as PyTorch adds them: both lists of indices are walked at once, and equal heads become one."""

from __future__ import annotations

import numpy as np

from ... import dtypes
from ...kernels.sparse import flatten_indices


def merge_entries(first: np.ndarray, second: np.ndarray, sizes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Where the entries of two lists of indices come in their sum.

    Args:
        first: indices, (sparse dimensions, entries).
        second: the other indices.
        sizes: the sizes of the sparse dimensions.

    Returns:
        Of each list, the position of each of its entries in the sum, and how many entries that has.
    """
    keys = [flatten_indices(each, sizes) for each in (first, second)]
    if all((each[1:] >= each[:-1]).all() for each in keys):
        return _merge_sorted(*keys)
    return _merge_heads(*keys)


def _occurrence(keys: np.ndarray) -> np.ndarray:
    """How many equal keys are before each of sorted keys."""
    starts = np.r_[True, keys[1:] != keys[:-1]]
    positions = np.arange(keys.size)
    return positions - np.maximum.accumulate(np.where(starts, positions, 0))


def _merge_sorted(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    entries = np.concatenate([np.stack([a, _occurrence(a)], 1), np.stack([b, _occurrence(b)], 1)])
    order = np.lexsort((entries[:, 1], entries[:, 0]))
    ranked = entries[order]
    starts = np.r_[True, (ranked[1:] != ranked[:-1]).any(1)]
    places = np.empty(order.size, np.int64)
    places[order] = np.cumsum(starts) - 1
    return places[:a.size], places[a.size:], np.array(int(starts.sum()))


def _merge_heads(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same for lists that are not sorted, whose order the sum keeps."""
    left, right = a.tolist(), b.tolist()
    of_a, of_b, count = [], [], 0
    i = j = 0
    while i < len(left) or j < len(right):
        takes_a = i < len(left) and (j == len(right) or left[i] <= right[j])
        takes_b = j < len(right) and (i == len(left) or right[j] <= left[i])
        if takes_a:
            of_a.append(count)
            i += 1
        if takes_b:
            of_b.append(count)
            j += 1
        count += 1
    return np.array(of_a, np.int64), np.array(of_b, np.int64), np.array(count)


def merged(first: np.ndarray, second: np.ndarray, values: tuple[np.ndarray, np.ndarray],
           sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The indices and values of the sum of two COO tensors.

    Args:
        first: the indices of one, (sparse dimensions, entries).
        second: those of the other.
        values: their values, of one dtype.
        sizes: the sizes of the sparse dimensions.
    """
    of_a, of_b, count = merge_entries(first, second, sizes)
    indices = np.empty((first.shape[0], int(count)), first.dtype)
    indices[:, of_a], indices[:, of_b] = first, second
    a, b = values
    total = np.zeros((int(count), *a.shape[1:]), a.dtype)
    total[of_a] = a
    total[of_b] = dtypes.cast(dtypes.widen(total[of_b]) + dtypes.widen(b), a.dtype)
    return indices, total


__all__ = ["merge_entries", "merged"]
