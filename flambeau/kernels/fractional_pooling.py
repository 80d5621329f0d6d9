"""Fractional max pooling: windows at pseudorandom positions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .. import dtypes


def fractional_starts(samples: np.ndarray, size: int, output: int, window: int) -> np.ndarray:
    """The first element of each window of fractional pooling along one axis: (*samples, output)."""
    starts = np.empty((*samples.shape, output), np.int64)
    if output > 1:
        alpha = samples.dtype.type(size - window) / samples.dtype.type(output - 1)
        steps = np.arange(output - 1, dtype=samples.dtype)
        starts[..., :-1] = ((steps + samples[..., None]) * alpha).astype(np.int64) - (
            samples[..., None] * alpha).astype(np.int64)
    starts[..., -1:] = size - window
    return starts


def fractional_maxima(input: np.ndarray, samples: np.ndarray, window: tuple[int, ...],
                      output: tuple[int, ...]) -> np.ndarray:
    """The flat index of the maximum of each window: (N, C, *output) from (N, C, *spatial) and (N, C, D) samples.

    Samples of planes are in the order (width, height), those of volumes (depth, height, width). A single sample may
    come without its dimension.
    """
    rank = len(window)
    if input.ndim == rank + 1:
        return fractional_maxima(input[None], samples[:1], window, output)[0]
    samples = samples[:len(input)]
    if samples.dtype.itemsize < 4:
        input, samples = dtypes.widen(input), dtypes.widen(samples)
    sizes = input.shape[2:]
    order = (1, 0) if rank == 2 else (0, 1, 2)
    flat: Any = 0
    for axis in range(rank):
        starts = fractional_starts(samples[..., order[axis]], sizes[axis], output[axis], window[axis])
        places = starts[..., None] + np.arange(window[axis])  # (N, C, output, window)
        shape = [*places.shape[:2], *(1,) * (2 * rank)]
        shape[2 + axis], shape[2 + rank + axis] = output[axis], window[axis]
        flat = flat * sizes[axis] + places.reshape(shape)
    flat = flat.reshape(*flat.shape[:2 + rank], prod(window))
    planes = input.shape[:2]
    values = np.take_along_axis(input.reshape(*planes, prod(sizes)), flat.reshape(*planes, prod(flat.shape[2:])), 2)
    values = values.reshape(flat.shape)
    nan = np.isnan(values)
    # a nan replaces what was found before it: the last one wins
    last_nan = nan.shape[-1] - 1 - np.argmax(nan[..., ::-1], -1)
    chosen = np.where(nan.any(-1), last_nan, np.argmax(np.where(nan, -np.inf, values), -1))
    return np.take_along_axis(flat, chosen[..., None], -1)[..., 0]
