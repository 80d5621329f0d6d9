"""Sums of float64 rows in PyTorch's order of additions, which determines their last bit.

Four vector lanes with four accumulators (strands) each, summed in a cascade of levels; then the lanes, added to the
remainder. PyTorch divides a single row of 32768 numbers and more among its threads; this is the order of one thread.
"""

from __future__ import annotations

import numpy as np

_LANES, _STRANDS, _LEVELS = 4, 4, 4


def row_sums(rows: np.ndarray) -> np.ndarray:
    """The sum of each row: (rows, n) to (rows,)."""
    count, n = rows.shape
    vectors = n // _LANES
    total = np.zeros(count)
    for k in range(vectors * _LANES, n):
        total = total + rows[:, k]
    if vectors:
        lanes = _strand_sums(rows[:, :vectors * _LANES].reshape(count, vectors, _LANES))
        for lane in range(_LANES):
            total = total + lanes[:, lane]
    return total


def _strand_sums(x: np.ndarray) -> np.ndarray:
    """(rows, vectors, lanes) to (rows, lanes)."""
    count, vectors, lanes = x.shape
    steps = vectors // _STRANDS
    strands = _cascade(x[:, :steps * _STRANDS].reshape(count, steps, _STRANDS, lanes))
    for i in range(steps * _STRANDS, vectors):
        strands[:, 0] += x[:, i]
    total = strands[:, 0]
    for k in range(1, _STRANDS):
        total = total + strands[:, k]
    return total


def _cascade(x: np.ndarray) -> np.ndarray:
    """Cascade summation, (rows, steps, strands, lanes) to (rows, strands, lanes)."""
    steps = x.shape[1]
    power = max(4, (steps - 1).bit_length() // _LEVELS if steps > 1 else 0)
    stride, mask = 1 << power, (1 << power) - 1
    levels = np.zeros((_LEVELS, x.shape[0], *x.shape[2:]))
    i = 0
    while i + stride <= steps:
        for _ in range(stride):
            levels[0] += x[:, i]
            i += 1
        for j in range(1, _LEVELS):
            levels[j] += levels[j - 1]
            levels[j - 1] = 0
            if i & (mask << (j * power)):
                break
    for rest in range(i, steps):
        levels[0] += x[:, rest]
    for j in range(1, _LEVELS):
        levels[0] += levels[j]
    total: np.ndarray = levels[0]
    return total
