"""The order in which PyTorch fills a strided output with random numbers: dimensions sorted by stride.

It determines which element gets which number of the stream.
"""

from __future__ import annotations

import numpy as np

from ...modes import active_tracer, special


def fill_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The dimensions from the slowest to the fastest, as PyTorch's iterator over one output visits them.

    >>> fill_order((2, 3), (4, 8))
    [1, 0]
    """
    order = list(range(len(shape) - 1, -1, -1))  # fastest first
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            comparison = _compare(shape, strides, order[j], order[at])
            if comparison > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif comparison < 0:
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
    order = fill_order(out.shape, out.strides)
    ordered = out.transpose(order)
    ordered[...] = values.reshape(ordered.shape)
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.on_place(values, out, order)
    return out
