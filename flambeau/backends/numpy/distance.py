"""Distances between all pairs of rows, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def _pair_norms(x: Any, y: Any, p: float) -> Any:
    d = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if not d.shape[-1]:
        return np.zeros(d.shape[:-1], d.dtype)
    if p == 0:
        return np.add.reduce(np.minimum(np.ceil(d), 1), -1)  # 1 where they differ, and NaN stays NaN
    if p == 1:
        return np.add.reduce(d, -1)
    if p == np.inf:
        return np.maximum.reduce(d, -1)
    if p == 2:
        return np.sqrt(np.add.reduce(np.multiply(d, d, out=d), -1))
    return np.add.reduce(d ** p, -1) ** d.dtype.type(1 / p)


def _pair_distances(x: Any, y: Any) -> Any:
    squares = np.vecdot(x, x)[..., :, None] + np.vecdot(y, y)[..., None, :]
    squares = squares - 2 * np.matmul(x, y.swapaxes(-1, -2))
    return np.sqrt(np.maximum(squares, 0))


def _row_distances(x: Any, p: float) -> Any:
    n = x.shape[0]
    rows, columns = np.triu_indices(n, 1)
    return np.ascontiguousarray(_pair_norms(x, x, p)[rows, columns])


PRIMITIVES = {"pair_norms": _pair_norms, "pair_distances": _pair_distances, "row_distances": _row_distances}
