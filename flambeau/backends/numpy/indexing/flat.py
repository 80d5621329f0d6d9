"""Elements at positions of the flattened array."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import dtypes
from ....warning_location import alert_not_deterministic
from ..memory import copy_as


def _take(x: Any, index: Any) -> Any:
    if index.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {dtypes.of(index.dtype).scalar_name}")
    if not x.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    _check_flat_range(index, x.size)
    return np.reshape(x, -1)[np.ascontiguousarray(index) if index.ndim else index]  # the result is row-major


def _check_flat_range(index: Any, size: int) -> None:
    if index.size and (index.min() < -size or index.max() >= size):
        wrong = index[(index < -size) | (index >= size)].flat[0] if index.ndim else index
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {size} elements.")


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    if not accumulate:
        alert_not_deterministic("put_")
    if index.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {dtypes.of(index.dtype).scalar_name}")
    if source.dtype != x.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{dtypes.of(x.dtype).scalar_name} and source.dtype = "
                           f"{dtypes.of(source.dtype).scalar_name}")
    if index.size != source.size:
        raise IndexError("put_(): Expected source and index to have the same number of elements, but got "
                         "source.numel() "
                         f"= {source.size}, index.numel() = {index.size}")
    _check_flat_range(index, x.size)
    out = np.array(x, order="C", copy=True)
    flat, positions, values = out.reshape(-1), index.reshape(-1), source.reshape(-1)
    if not accumulate:
        flat[positions] = values
    elif x.dtype.kind == "V":  # rounded after each addition: the first elements of all positions, the second ones, ...
        positions = np.where(positions < 0, positions + flat.size, positions)
        order = np.argsort(positions, kind="stable")
        places = positions[order]
        first = np.concatenate([[True], places[1:] != places[:-1]]) if places.size else np.zeros(0, bool)
        turn = np.arange(places.size) - np.maximum.accumulate(np.where(first, np.arange(places.size), 0))
        for k in range(int(turn.max(initial=-1)) + 1):
            at = order[turn == k]
            flat[positions[at]] = dtypes.cast(dtypes.widen(flat[positions[at]]) + dtypes.widen(values[at]), x.dtype)
    else:
        np.add.at(flat, positions, values)
    if x.flags.c_contiguous:
        return out
    result = copy_as(x)
    result[...] = out
    return result


PRIMITIVES: dict[str, Any] = {
    "take": _take, "put": _put,
}
