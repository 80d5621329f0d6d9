"""Reductions, scans and orderings of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...shapes import wrap_dims


def _axis(dim: Any, ndim: int) -> tuple[int, ...]:
    return wrap_dims(dim, ndim)


_add_reduce = np.add.reduce


def _sum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return _add_reduce(x, None, None, None, keepdim)
    return np.sum(x, axis=_axis(dim, x.ndim), keepdims=keepdim)


def _mean(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    axis = _axis(dim, x.ndim)
    total = np.add.reduce(x, axis=axis, keepdims=keepdim)
    count = 1
    for a in axis:
        count *= x.shape[a]
    return total / x.dtype.type(count)


def _sum_to_size(x: Any, size: tuple[int, ...]) -> Any:
    if x.shape == size:
        return x
    lead = x.ndim - len(size)
    axes = tuple(range(lead)) + tuple(i + lead for i, s in enumerate(size) if s == 1 and x.shape[i + lead] != 1)
    if axes:
        x = np.add.reduce(x, axis=axes, keepdims=True)
    return x.reshape(size)


PRIMITIVES = {"sum": _sum, "mean": _mean, "sum_to_size": _sum_to_size}
