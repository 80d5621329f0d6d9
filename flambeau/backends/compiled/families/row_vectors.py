"""Distances of the rows of a matrix by a kernel."""

from __future__ import annotations

import numpy as np

from ....codegen.linalg import row_vectors


def distances_of_pairs(x: np.ndarray) -> np.ndarray | None:
    """The Euclidean distances of each row from those after it, with NumPy's bits; None where NumPy has to compute."""
    if x.dtype.char not in "fd" or not x.flags.c_contiguous or len(x) < 2 or (
            not 0 < x.shape[1] <= row_vectors.MOST_TERMS):
        return None
    rows, length = x.shape
    result = np.empty(rows * (rows - 1) // 2, x.dtype)
    row_vectors.distances_of_pairs(x.dtype, rows, length)(result, x)
    return result


__all__ = ["distances_of_pairs"]
