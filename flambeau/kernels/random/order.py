"""In which order PyTorch fills a strided output: dimensions sorted by stride, not row by row.

A draw is a stream of numbers, so which element gets which number is part of the result.
"""

from __future__ import annotations

import numpy as np


def fill_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The dimensions from the slowest to the fastest, as PyTorch's iterator over one output visits them.

    >>> fill_order((2, 3), (4, 8))
    [1, 0]
    """
    order = list(range(len(shape) - 1, -1, -1))  # fastest first
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            verdict = _compare(shape, strides, order[j], order[at])
            if verdict > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif verdict < 0:
                break
    return order[::-1]


def _compare(shape: tuple[int, ...], strides: tuple[int, ...], a: int, b: int) -> int:
    if strides[a] == 0 or strides[b] == 0:
        return 0
    if strides[a] != strides[b]:
        return -1 if strides[a] < strides[b] else 1
    return 1 if shape[a] > shape[b] else 0


def place(values: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write a stream of values into `out`, of any strides, in the order PyTorch fills it; returns `out`.

    Args:
        values: shape (out.size,), the numbers in the order they were drawn.
        out: the array to fill.
    """
    turned = out.transpose(fill_order(out.shape, out.strides))
    turned[...] = values.reshape(turned.shape)
    return out
