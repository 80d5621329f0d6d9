"""Index arrays that are computed from data: of nonzero elements, of repetitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import dtypes
from ....kernels.memory_format import noted
from .bounds import scalar_name


def nonzero_places(x: Any) -> Any:
    """Return the indices of the elements that are not 0: (dimensions, elements), int64.

    NumPy's `nonzero` is fast for one dimension, and for few elements, only: positions in a flat array are divided by
    the sizes.
    """
    if x.ndim < 2 or x.size <= 512 or not x.flags.c_contiguous:
        return np.array(x.nonzero(), np.int64)
    flat = x.reshape(-1).nonzero()[0]
    places = np.empty((x.ndim, flat.size), np.int64)
    places[-1] = flat
    for axis in range(x.ndim - 1, 0, -1):
        np.floor_divide(places[axis], x.shape[axis], out=places[axis - 1])
        places[axis] -= places[axis - 1] * x.shape[axis]
    return places


def _nonzero(x: Any) -> Any:
    if x.dtype == dtypes.BFLOAT16:
        x = dtypes.widen(x)
    if not x.ndim:
        return np.zeros((int(bool(x)), 0), np.int64)
    return noted(nonzero_places(x).T)


def _repeat_interleave(repeats: Any) -> Any:
    if repeats.dtype.kind != "i" or repeats.dtype.itemsize < 4:
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{scalar_name(repeats)}'")
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    return np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)


PRIMITIVES: dict[str, Any] = {
    "nonzero": _nonzero, "repeat_interleave_indices": _repeat_interleave,
}
