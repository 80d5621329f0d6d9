"""Resampling of one dimension of arrays by weighted taps, and its transpose."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any

import numpy as np

from ..compiled import resampling_kernels

Taps = tuple[tuple[int, ...], ...]
Weights = tuple[tuple[float, ...], ...] | None

#: the number of taps from which a matrix product is faster than a sum over taps
MATRIX_TAPS = 6
#: at most so many phases, and slices of each, are added one by one
FEW_RUNS = 6


@functools.lru_cache(1024)
def _rows_of(row: tuple[int, ...]) -> np.ndarray:
    return np.array(row)


@functools.lru_cache(1024)
def _column_of(column: tuple[float, ...], dtype: np.dtype) -> np.ndarray:
    return np.array(column, dtype)


def _matrix(dtype: np.dtype, size: int, positions: Taps, weights: tuple[tuple[float, ...], ...]) -> np.ndarray:
    """Return the weights as a matrix (size, outputs)."""
    matrix = np.zeros((size, len(positions[0])), dtype)
    for row, column in zip(positions, weights, strict=True):
        np.add.at(matrix, (np.array(row), np.arange(len(row))), column)
    return matrix


def _resample(x: Any, dim: int, size: int, positions: Taps, weights: Weights) -> Any:
    """Return the sums over taps of `weights · x[positions]` along a dimension."""
    if weights is None:
        return x.take(_rows_of(positions[0]), dim)
    if len(positions) >= MATRIX_TAPS:
        product = np.matmul(np.moveaxis(x, dim, -1), _matrix(x.dtype, size, positions, weights))
        return np.ascontiguousarray(np.moveaxis(product, -1, dim))
    kernels = resampling_kernels(x.size)
    if kernels is not None and (result := kernels.resample(x, dim, positions, weights)) is not None:
        return result
    along = (-1, *(1,) * (-dim - 1))
    total = None
    for row, column in zip(positions, weights, strict=True):
        term = x.take(_rows_of(row), dim)
        np.multiply(term, _column_of(column, x.dtype).reshape(along), out=term)
        total = term if total is None else np.add(total, term, out=total)
    return total


@functools.lru_cache(1024)
def _ascending_runs(row: tuple[int, ...]) -> list[tuple[slice, slice]] | None:
    """Return pairs of slices, of positions and of outputs, that say what is added where; None if they are many.

    Where each position is used k times (a scale of k), every k-th output has the next position.
    """
    rows = _rows_of(row)
    step = max(1, -(-rows.size // (int(rows[-1]) - int(rows[0]) + 1))) if rows.size else 1
    if step > FEW_RUNS:
        return None
    runs = []
    for phase in range(step):
        places = rows[phase::step]
        ends = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), places.size]
        if len(ends) > FEW_RUNS:
            return None
        for start, end in pairwise(ends):
            if end > start:
                first = int(places[start])
                runs.append((slice(first, first + end - start),
                             slice(phase + start * step, phase + (end - 1) * step + 1, step)))
    return runs


def _resample_backward(g: Any, dim: int, size: int, positions: Taps, weights: Weights) -> Any:
    """Return the transpose of `_resample`: each element, times its weights, added at its positions."""
    if weights is not None and len(positions) >= MATRIX_TAPS:
        product = np.matmul(np.moveaxis(g, dim, -1), _matrix(g.dtype, size, positions, weights).T)
        return np.ascontiguousarray(np.moveaxis(product, -1, dim))
    kernels = None if weights is None else resampling_kernels(g.size)
    if kernels is not None and (result := kernels.resample_backward(g, dim, size, positions, weights)) is not None:
        return result
    axis = g.ndim + dim
    out = np.zeros((*g.shape[:axis], size, *g.shape[axis + 1:]), g.dtype)
    along = (-1, *(1,) * (-dim - 1))
    lead = (slice(None),) * axis
    for i, row in enumerate(positions):
        values = g if weights is None else g * _column_of(weights[i], g.dtype).reshape(along)
        runs = _ascending_runs(row)
        if runs is not None:
            for target, source in runs:
                out[(*lead, target)] += values[(*lead, source)]
            continue
        rows = _rows_of(row)
        starts = np.flatnonzero(np.diff(rows, prepend=-1))  # positions do not decrease: each run is one sum
        out[(*lead, rows[starts])] += np.add.reduceat(values, starts, axis)
    return out


PRIMITIVES = {"resample": _resample, "resample_backward": _resample_backward}
