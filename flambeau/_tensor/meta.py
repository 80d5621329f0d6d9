"""Meta tensors: tensors of the device "meta", which have shape, dtype and strides, but no elements.

Their arrays are addresses that nothing reads or writes, so that the operating system provides no memory. The metadata
of an operator's result is inferred (`shape.inference`), and the result is a meta tensor again; in-place operators
write nothing.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .overriding.dispatch import begin_dispatch, end_dispatch, meta_tensors
from .overriding.entry_points import begin_use, end_use

NO_DATA = "Cannot copy out of meta tensor; no data!"


def is_meta(x: Any) -> bool:
    """Whether a value is a meta tensor."""
    found = meta_tensors.get(id(x))
    return found is not None and found() is x


def lacks_elements(x: Any) -> bool:
    """Whether a value is a tensor without elements: a meta tensor, or one of a class that has none."""
    return is_meta(x) or getattr(type(x), "_lacks_elements", False)


def mark_meta(x: Any) -> Any:
    """Make a tensor a meta tensor on the memory that it has; the tensor."""
    key = id(x)
    if key not in meta_tensors:
        def discard(_: Any) -> None:
            if meta_tensors.pop(key, None) is not None:
                end_use()
                end_dispatch()

        meta_tensors[key] = weakref.ref(x, discard)
        begin_use()
        begin_dispatch()
    return x


#: bytes from which on an array gets an address range of its own, without the promise of memory
_RESERVED = 1 << 26
_NORESERVE = 0x4000 if hasattr(mmap, "MAP_ANONYMOUS") else 0  # MAP_NORESERVE, which `mmap` names from Python 3.13 on


def reserved(shape: Sequence[int], dtype: np.dtype, strides: Sequence[int] | None = None) -> np.ndarray:
    """An array of zeros that nothing has touched.

    Args:
        strides: in elements; default: row-major.

    Raises:
        RuntimeError: there are not as many addresses.
    """
    shape = tuple(shape)
    count = prod(shape)
    if strides is not None and count:
        count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    size = count * dtype.itemsize
    if size < _RESERVED or not _NORESERVE:
        memory = np.zeros(count, dtype)
    else:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        try:
            memory = np.frombuffer(mmap.mmap(-1, size, flags), np.uint8).view(dtype)
        except (OSError, OverflowError, ValueError):
            raise RuntimeError(f"a meta tensor of {size} bytes: there are not as many addresses") from None
    if strides is None or not memory.size:
        return memory.reshape(shape)
    return np.lib.stride_tricks.as_strided(memory, shape, tuple(s * dtype.itemsize for s in strides))


def untouched(array: np.ndarray) -> np.ndarray:
    """An array of the same shape, dtype and strides on new memory."""
    if array.flags.c_contiguous or not array.size:
        return reserved(array.shape, array.dtype)
    return reserved(array.shape, array.dtype, [abs(s) // array.itemsize for s in array.strides])


def without_elements(x: Any) -> Any:
    """Make a tensor a meta tensor, and give up its elements; the tensor."""
    x._array = untouched(x._array)
    return mark_meta(x)


__all__ = ["NO_DATA", "is_meta", "lacks_elements", "mark_meta", "reserved", "untouched", "without_elements"]
