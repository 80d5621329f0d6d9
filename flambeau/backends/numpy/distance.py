"""Pairwise distances of rows on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import distances_of_pairs

#: elements of differences that are in memory at once: they stay in the second-level cache
_BLOCK = 2 ** 16


def _cdist(x: Any, y: Any, p: float) -> Any:
    if x.size * y.size <= _BLOCK * x.shape[-1] or not x.shape[-1]:  # at least as many as there are differences
        return _distances(x, y, p)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    rows, columns, width = x.shape[-2], y.shape[-2], x.shape[-1]
    result = np.empty((*batch, rows, columns), x.dtype)
    x, y = np.broadcast_to(x, (*batch, rows, width)), np.broadcast_to(y, (*batch, columns, width))
    wide = min(columns, max(1, _BLOCK // width))
    high = max(1, _BLOCK // (wide * width))
    for index in np.ndindex(batch):
        for i in range(0, rows, high):
            for j in range(0, columns, wide):
                result[(*index, slice(i, i + high), slice(j, j + wide))] = _distances(
                    x[(*index, slice(i, i + high))], y[(*index, slice(j, j + wide))], p)
    return result


def _distances(x: Any, y: Any, p: float) -> Any:
    d = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if not d.shape[-1]:
        return np.zeros(d.shape[:-1], d.dtype)
    if p == 0:
        return np.add.reduce(np.minimum(np.ceil(d), 1), -1)  # 1 where they differ; propagates NaN
    if p == 1:
        return np.add.reduce(d, -1)
    if p == np.inf:
        return np.maximum.reduce(d, -1)
    if p == 2:
        return np.sqrt(np.add.reduce(np.multiply(d, d, out=d), -1))
    return np.add.reduce(d ** p, -1) ** d.dtype.type(1 / p)


def _euclidean_dist(x: Any, y: Any) -> Any:
    squares = np.vecdot(x, x)[..., :, None] + np.vecdot(y, y)[..., None, :]
    squares = squares - 2 * np.matmul(x, y.swapaxes(-1, -2))
    return np.sqrt(np.maximum(squares, 0))


def _pdist(x: Any, p: float) -> Any:
    n = x.shape[0]
    found = distances_of_pairs(x) if p == 2 and x.size * n > _BLOCK else None
    if found is not None:
        return found
    rows, columns = np.triu_indices(n, 1)
    return np.ascontiguousarray(_cdist(x, x, p)[rows, columns])


PRIMITIVES = {"cdist": _cdist, "euclidean_dist": _euclidean_dist, "pdist": _pdist}
