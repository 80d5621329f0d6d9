"""Checks of indices, and the choice between NumPy and compiled indexing kernels."""

from __future__ import annotations

from math import copysign
from typing import Any

import numpy as np

from .... import dtypes
from ...compiled import indexing_kernels
from ...compiled.thresholds import COPIES, INDEXING

least, largest = np.minimum.reduce, np.maximum.reduce  # `index.min()` goes through a function of Python
#: negative indices are large as unsigned ones: one reduction finds whether any is out of range
_UNSIGNED = {np.dtype(np.int64): np.dtype(np.uint64), np.dtype(np.int32): np.dtype(np.uint32)}


def out_of_range(index: Any, size: int) -> bool:
    """Return whether an index of at least one element is negative, or at least `size`."""
    unsigned = _UNSIGNED.get(index.dtype)
    if unsigned is None:
        return bool(least(index, None) < 0 or largest(index, None) >= size)
    return bool(largest(index.view(unsigned), None) >= size)


def check_range(index: Any, size: int, dim: int) -> None:
    """Raise PyTorch's RuntimeError if an index is negative, or at least `size`."""
    if index.size and out_of_range(index, size):
        wrong = (index < 0) | (index >= size)
        raise RuntimeError(f"index {index[wrong].flat[0]} is out of bounds for dimension {dim} with size {size}")


def kernels_for(size: int, index: Any, threshold: list[int] = INDEXING) -> Any:
    """Return the compiled indexing kernels for this many elements; None where NumPy indexes."""
    return indexing_kernels() if size > threshold[0] and index.flags.c_contiguous else None


def gather_threshold(axis: int) -> list[int]:
    """Return the threshold for compiled gathers of slices: NumPy is as fast along the first axis."""
    return INDEXING if axis else COPIES


def check_in_self(index: Any, size: int) -> None:
    """Raise PyTorch's IndexError if an index is negative, or at least `size`."""
    if index.size and out_of_range(index, size):
        raise IndexError("index out of range in self")


def scalar_name(x: Any) -> str:
    """Return the name of an array's dtype in PyTorch's errors."""
    return dtypes.of(x.dtype).scalar_name


def is_broadcast_zero(x: Any) -> bool:
    """Whether an array is one 0 that is broadcast, as rules of gradients make it."""
    if x.dtype.kind != "f" or not x.ndim or any(x.strides) or not x.size:
        return False
    number = x.item(0)
    return not number and copysign(1.0, number) > 0
