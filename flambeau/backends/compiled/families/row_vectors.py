"""Distances of the rows of a matrix, and attention of single rows, by kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ....codegen.linalg import attention_rows, row_vectors
from ....runtime.filling import Filling, NewArray, with_filling

_SINGLE = np.dtype(np.float32)


def distances_of_pairs(x: np.ndarray) -> np.ndarray | None:
    """The Euclidean distances of each row from those after it, with NumPy's bits; None where NumPy has to compute."""
    if x.dtype.char not in "fd" or not x.flags.c_contiguous or len(x) < 2 or (
            not 0 < x.shape[1] <= row_vectors.MOST_TERMS):
        return None
    rows, length = x.shape
    result = np.empty(rows * (rows - 1) // 2, x.dtype)
    row_vectors.distances_of_pairs(x.dtype, rows, length)(result, x)
    return result


def attention_of_rows(query: np.ndarray, key: np.ndarray, value: np.ndarray, scale: float) -> np.ndarray | None:
    """Attention of one query to keys in each head, in the query's memory layout; None where NumPy has to compute it."""
    if not _are_rows(query, key, value):
        return None
    width, depth = query.shape[3], value.shape[3]
    if width == depth:
        out = np.empty(query.shape, _SINGLE) if query.flags.c_contiguous else np.empty_like(query)
    else:
        out = np.empty((*query.shape[:3], depth), _SINGLE)
    scores = np.empty(key.shape[2] + attention_rows.PADDING, _SINGLE)
    result: np.ndarray = attention_rows.function()(out, scores, query, key, value, _number(scale))
    return result


def attention_of_rows_launch(query: np.ndarray, key: np.ndarray, value: np.ndarray,
                             scale: float) -> Callable[..., np.ndarray] | None:
    """The function of row-major arrays of a layout that computes `attention_of_rows`; None where there is none."""
    if not _are_rows(query, key, value) or not query.flags.c_contiguous:
        return None
    out, scores = NewArray((*query.shape[:3], value.shape[3]), _SINGLE), NewArray((
        key.shape[2] + attention_rows.PADDING,), _SINGLE)
    attend, number, empty = attention_rows.function(), _number(scale), np.empty
    return with_filling(
        lambda q, k, v: attend(empty(out.shape, _SINGLE), empty(scores.shape, _SINGLE), q, k, v, number),
        Filling(attend, (out, scores, 0, 1, 2, [number])))


@lru_cache(256)
def _number(scale: float) -> np.ndarray:
    return np.asarray(scale, _SINGLE)


def _are_rows(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> bool:
    """Whether these are float32 arrays of one query and keys and values in each head, with contiguous rows."""
    (batches, heads, _, width), kept, held = query.shape, key.shape, value.shape
    if kept[0] != batches or kept[1] != heads or held[:3] != kept[:3] or kept[3] != width or not (width and held[3]):
        return False
    if not (query.dtype is key.dtype is value.dtype is _SINGLE):
        return False
    for x in (query, key, value):
        if not x.flags.c_contiguous and (x.strides[3] != 4 or min(x.strides) < 0):
            return False
    return True


__all__ = ["attention_of_rows", "attention_of_rows_launch", "distances_of_pairs"]
