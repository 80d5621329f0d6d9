"""Products of sparse matrices, on components as NumPy arrays."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from .sparse import coalesce, compress, decompress, sum_groups

#: the number of products that are computed at a time
_CHUNK = 1 << 18


def csr_times_dense(compressed: np.ndarray, columns: np.ndarray, values: np.ndarray, dense: np.ndarray) -> np.ndarray:
    """A CSR matrix times a dense matrix (or vector).

    Args:
        compressed: (rows + 1,).
        columns, values: (n,).
        dense: (columns, *rest).
    """
    rows = compressed.size - 1
    narrow = values.dtype in dtypes.NARROW
    out = np.zeros((rows, *dense.shape[1:]), np.float32 if narrow else values.dtype)
    if narrow:
        values_, dense_ = dtypes.widen(values), dtypes.widen(dense)
    else:
        values_, dense_ = values, dense
    width = max(1, int(np.prod(dense.shape[1:])))
    n = values.shape[0]
    filled = np.flatnonzero(np.diff(compressed))
    starts = compressed[filled]
    step = max(1, _CHUNK // width)
    scale = values_.reshape(-1, *(1,) * (dense.ndim - 1))
    if n <= step:
        if n:
            out[filled] = sum_groups(scale * dense_[columns], starts)
        return dtypes.cast(out, values.dtype) if narrow else out
    begin = 0
    while begin < filled.size:  # whole rows at a time
        end = int(np.searchsorted(starts, starts[begin] + step, "right"))
        end = max(end, begin + 1)
        low = int(starts[begin])
        high = int(starts[end]) if end < filled.size else n
        products = scale[low:high] * dense_[columns[low:high]]
        out[filled[begin:end]] = sum_groups(products, starts[begin:end] - low)
        begin = end
    return dtypes.cast(out, values.dtype) if narrow else out


def csr_times_csr(first: tuple[np.ndarray, np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray, np.ndarray],
                  shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The indices (2, n), sorted and distinct, and the values of the product of two CSR matrices."""
    starts, columns, values = first
    other_starts, other_columns, other_values = second
    rows = decompress(starts)
    counts = np.diff(other_starts)[columns] if columns.size else np.zeros(0, np.int64)
    total = int(counts.sum())
    source = np.repeat(np.arange(columns.size), counts)
    offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    places = other_starts[columns[source]] + offsets if total else np.zeros(0, np.int64)
    products = dtypes.widen(values)[source] * dtypes.widen(other_values)[places]
    indices = np.stack([rows[source], other_columns[places]]).astype(np.int64) if total else np.zeros((2, 0), np.int64)
    indices, sums = coalesce(indices, products, shape)
    return indices, dtypes.cast(sums, values.dtype)


def sort_by_row(indices: np.ndarray, values: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A CSR matrix of COO components; columns of a row may repeat and need no order."""
    numbers = indices[0]
    if numbers.size > 1 and (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        return compress(numbers, rows), indices[1][order], values[order]
    return compress(numbers, rows), indices[1], values


__all__ = ["csr_times_csr", "csr_times_dense", "sort_by_row"]
