"""Batches of column-major matrices on a device, and results with the strides that the CPU's have."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....backends.cuda_devices import current_runtime
from ....backends.cuda_devices.array import DeviceArray, device_array
from .namespace import DeviceNamespace

INT32 = np.dtype(np.int32)


def real_dtype(a: DeviceArray) -> np.dtype:
    """The dtype of real numbers of an array's precision."""
    return np.dtype(a.dtype.char.lower())


def batched(a: DeviceArray, lead: Sequence[int], trailing: int = 2) -> DeviceArray:
    """A batch of matrices or vectors as an array with these dimensions in front."""
    return split(a, (*lead, *a.shape[a.ndim - trailing:]))


def split(a: DeviceArray, shape: Sequence[int]) -> DeviceArray:
    """An array whose first dimension is the batch, with several dimensions in place of it."""
    lead = tuple(shape[:len(shape) - a.ndim + 1])
    step, strides = a.strides[0], []
    for n in reversed(lead):
        strides.append(step)
        step *= max(n, 1)
    return device_array(a.memory, shape, a.dtype, (*reversed(strides), *a.strides[1:]), a.byte_offset)


def vectors(xp: DeviceNamespace, lead: Sequence[int], n: int, dtype: np.dtype) -> DeviceArray:
    """A new array (batch, n)."""
    return xp.empty((prod(lead), n), dtype)


def column_major(xp: DeviceNamespace, a: DeviceArray) -> DeviceArray:
    """The array itself if its matrices are column-major and dense, else a copy of which that is true."""
    rows = a.swapaxes(-1, -2)
    if rows.flags.c_contiguous and 1 not in a.shape[-2:]:
        return a
    return batched(xp.column_major(a), a.shape[:-2])


def new_column_major(xp: DeviceNamespace, count: int, m: int, n: int, dtype: np.dtype) -> DeviceArray:
    """A new array (batch, m, n) of column-major matrices."""
    return xp.empty((count, n, m), dtype).swapaxes(-1, -2)


def row_major(xp: DeviceNamespace, a: DeviceArray) -> DeviceArray:
    """The array itself if it is row-major, else a copy."""
    return a if a.flags.c_contiguous else xp.copy(a)


def broadcast(a: DeviceArray, shape: Sequence[int]) -> DeviceArray:
    """A view that repeats an array."""
    found: Any = np.broadcast_to(a, tuple(shape), subok=True)
    return found


def lead_of(a: DeviceArray, b: DeviceArray) -> tuple[int, ...]:
    """The common batch dimensions of two batches of matrices.

    Raises:
        RuntimeError: they do not broadcast.
    """
    from ....shapes import broadcast_shapes

    return tuple(broadcast_shapes(a.shape[:-2], b.shape[:-2]))


def read(a: DeviceArray) -> np.ndarray:
    """The elements, for which the host waits."""
    found: np.ndarray = current_runtime().download(a)
    return found
