"""Conversions between sparse formats, on components as NumPy arrays.

A compressed matrix is a triple (compressed, plain, values); `by_row` says whether rows are compressed. Blocks are
`values` of shape (n, height, width, *dense). Batches are converted one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .. import dtypes
from .sparse import compress, decompress, flatten_indices, scatter_add

Compressed = tuple[np.ndarray, np.ndarray, np.ndarray]


def nonzero(a: np.ndarray) -> np.ndarray:
    """Whether elements are not zero, of any dtype."""
    if a.dtype == dtypes.COMPLEX32:
        return (a.view(np.uint32) & 0x7FFF7FFF) != 0
    if a.dtype.kind == "V":
        return (a.view(np.uint16) & 0x7FFF) != 0
    return a != 0


def coo_to_dense(indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...], distinct: bool) -> np.ndarray:
    """A dense array with the values at the indices; values at equal places add up unless indices are `distinct`."""
    sparse_dim = indices.shape[0]
    out = np.zeros(shape, values.dtype)
    if not values.size:
        return out
    if not sparse_dim:
        out[...] = values[0] if values.shape[0] == 1 else dtypes.cast(dtypes.widen(values).sum(0), values.dtype)
        return out
    if distinct or values.dtype.kind == "b":
        if distinct:
            out[tuple(indices)] = values
        else:
            np.logical_or.at(out, tuple(indices), values)
        return out
    rows = out.reshape(prod(shape[:sparse_dim]), *shape[sparse_dim:])
    scatter_add(rows, flatten_indices(indices, shape[:sparse_dim]), values)
    return out


def dense_to_coo(a: np.ndarray, sparse_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The indices and values of the elements (of the dense dimensions) that are not zero."""
    mask: Any = nonzero(a)
    if sparse_dim < a.ndim:
        mask = mask.any(tuple(range(sparse_dim, a.ndim)))
    if not sparse_dim:
        count = int(bool(mask))
        return np.zeros((0, count), np.int64), np.array(a[None][:count])
    places = np.nonzero(mask)
    return np.array(places, np.int64), a[places]


def compressed_to_coo(matrix: Compressed, by_row: bool, block: tuple[int, int] | None, *,
                      in_order: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The indices (2, n) and values (n, *dense) of a compressed matrix, in row-major order or in that of its values."""
    compressed, plain, values = matrix
    along, across = decompress(compressed).astype(np.int64), plain.astype(np.int64)
    rows, columns = (along, across) if by_row else (across, along)
    if block is not None:
        height, width = block
        shape = (rows.size, height, width)
        rows = np.broadcast_to((rows * height)[:, None, None] + np.arange(height)[:, None], shape).reshape(-1)
        columns = np.broadcast_to((columns * width)[:, None, None] + np.arange(width), shape).reshape(-1)
        values = values.reshape(rows.size, *values.shape[3:])
    indices = np.stack([rows, columns]) if rows.size else np.zeros((2, 0), np.int64)
    if in_order and (block is not None or not by_row):
        order = np.lexsort(indices[::-1])
        indices, values = indices[:, order], values[order]
    return indices, values


def coo_to_compressed(indices: np.ndarray, values: np.ndarray, shape: Sequence[int], by_row: bool,
                      dtype: np.dtype | type = np.int64) -> Compressed:
    """A compressed matrix of sorted and distinct indices (2, n)."""
    rows, columns = indices
    if by_row:
        return compress(rows, shape[0], dtype), columns.astype(dtype), values
    order = np.argsort(columns, kind="stable")
    return compress(columns, shape[1], dtype), rows[order].astype(dtype), values[order]


def coo_to_blocks(indices: np.ndarray, values: np.ndarray, shape: Sequence[int], by_row: bool,
                  block: tuple[int, int], dtype: np.dtype | type = np.int64) -> Compressed:
    """A compressed matrix of blocks that contain the given places."""
    height, width = block
    rows, columns = indices
    across = shape[1] // width
    flat = rows // height * across + columns // width
    blocks, places = np.unique(flat, return_inverse=True)
    result = np.zeros((blocks.size, height, width, *values.shape[1:]), values.dtype)
    result[places.reshape(-1), rows % height, columns % width] = values
    found = np.stack(np.divmod(blocks, max(across, 1)))
    return coo_to_compressed(found, result, (shape[0] // height, across), by_row, dtype)


def dense_to_blocks(a: np.ndarray, block: tuple[int, int], by_row: bool) -> Compressed:
    """A compressed matrix of the blocks of a dense one that are not zero."""
    height, width = block
    rows, columns = a.shape[0] // height, a.shape[1] // width
    tiles = a.reshape(rows, height, columns, width, *a.shape[2:]).swapaxes(1, 2)
    mask = nonzero(tiles).any(tuple(range(2, tiles.ndim)))
    indices = np.array(np.nonzero(mask), np.int64)
    return coo_to_compressed(indices, tiles[tuple(indices)], (rows, columns), by_row)


__all__ = [
    "compressed_to_coo",
    "coo_to_blocks",
    "coo_to_compressed",
    "coo_to_dense",
    "dense_to_blocks",
    "dense_to_coo",
    "nonzero",
]
