"""Launches of gathers and scatters on small arrays: flat positions from offsets that the layouts determine.

A launch returns None where an index is out of range: the operator itself then raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import COPIES, INDEXING
from ...kernels.small_indexing import exceeds as _exceeds
from ...shapes import contiguous_strides, wrap_dim

ndarray = np.ndarray
asarray = np.asarray
_sum, _add_at = np.add.reduce, np.add.at
_LONG = np.dtype(np.int64)
Launch = Callable[..., Any] | None


def _positions(a: ndarray, index: Any, dim: int) -> Callable[[ndarray], Any] | None:
    """The function of an index along `dim` of arrays of this layout that gives positions in memory."""
    if index.__class__ is not ndarray or index.dtype is not _LONG or not a.ndim or index.ndim != a.ndim or (
            not index.size or index.size > INDEXING[0] or not a.size):
        return None
    axis = wrap_dim(dim, a.ndim)
    steps = contiguous_strides(a.shape)
    base = np.zeros(index.shape, np.int64)
    for d, (n, step) in enumerate(zip(index.shape, steps, strict=True)):
        if d != axis:
            base += (np.arange(n) * step).reshape(-1, *(1,) * (a.ndim - 1 - d))
    size, step = a.shape[axis], steps[axis]

    def positions(index: ndarray) -> Any:
        if _exceeds(index, size):  # negative ones are large as unsigned
            return None
        return index + base if step == 1 else index * step + base

    return positions


def _gather(a: ndarray, index: ndarray, dim: int, sparse_grad: bool = False) -> Launch:
    positions = _positions(a, index, dim)
    if positions is None:
        return None

    def launch(x: ndarray, index: ndarray) -> Any:
        found = positions(index)
        return None if found is None else x.take(found)

    return launch


def _scatter(a: ndarray, index: ndarray, src: Any = None, *, dim: int, value: Any = None) -> Launch:
    positions = _positions(a, index, dim)
    if positions is None or a.dtype.kind != "f":
        return None
    if src is None:
        src = a.dtype.type(value)
    elif index.shape != src.shape or a.dtype is not src.dtype:
        return None

    def launch(x: ndarray, index: ndarray, source: Any = src) -> Any:
        found = positions(index)
        if found is None:
            return None
        result = x.copy()
        result.reshape(-1)[found] = source
        return result

    return launch


def _adding(positions: Callable[[ndarray], Any]) -> Launch:
    """The launch that adds a source at the positions of an index; None where one is out of range."""
    def launch(x: ndarray, index: ndarray, source: ndarray) -> Any:
        found = positions(index)
        if found is None:
            return None
        result = x.copy()
        _add_at(result.reshape(-1), found.reshape(-1), source.reshape(-1))
        return result

    return launch


def _scatter_add(a: ndarray, index: ndarray, src: ndarray, dim: int) -> Launch:
    positions = _positions(a, index, dim)
    if positions is None or index.shape != src.shape or a.dtype is not src.dtype or a.dtype.kind != "f":
        return None
    return _adding(positions)


def _vector(a: ndarray, index: Any, dim: int) -> int | None:
    """The axis of a vector of indices; None where there is no launch."""
    if index.__class__ is not ndarray or index.dtype is not _LONG or index.ndim != 1 or not index.size or (
            not a.ndim or not a.size):
        return None
    axis = wrap_dim(dim, a.ndim)
    return axis if index.size * (a.size // a.shape[axis]) <= (INDEXING if axis else COPIES)[0] else None


def _index_select(a: ndarray, index: ndarray, dim: int) -> Launch:
    axis = _vector(a, index, dim)
    if axis is None:
        return None
    size = a.shape[axis]
    return lambda x, index: None if _exceeds(index, size) else x.take(index, axis)


def _index_fill(a: ndarray, index: ndarray, value: Any, dim: int) -> Launch:
    axis = _vector(a, index, dim)
    if axis is None or a.dtype.kind != "f" or value.__class__ is ndarray:
        return None
    size, number = a.shape[axis], a.dtype.type(value)
    before: tuple[Any, ...] = (slice(None),) * axis

    def launch(x: ndarray, index: ndarray) -> Any:
        if _exceeds(index, size):
            return None
        result = x.copy()
        result[(*before, index)] = number
        return result

    return launch


def _index_add(a: ndarray, index: ndarray, source: ndarray, dim: int, alpha: Any = 1) -> Launch:
    axis = _vector(a, index, dim)
    if axis is None or alpha != 1 or a.dtype is not source.dtype or a.dtype.kind != "f" or (
            source.shape != (*a.shape[:axis], index.size, *a.shape[axis + 1:])):
        return None
    full = np.broadcast_to(index.reshape(-1, *(1,) * (a.ndim - 1 - axis)), source.shape)
    positions = _positions(a, np.ascontiguousarray(full), dim)
    if positions is None:
        return None
    shape, kept = source.shape, (-1, *(1,) * (a.ndim - 1 - axis))
    blank = np.zeros(shape, np.int64)
    return _adding(lambda index: positions(blank + index.reshape(kept)))


def _index(a: ndarray, *indices: Any) -> Launch:
    at = [i for i, index in enumerate(indices) if index is not None]
    if not a.size or not a.flags.c_contiguous or any(
            indices[i].__class__ is not ndarray or indices[i].dtype is not _LONG or not indices[i].size for i in at):
        return None
    if len(at) == 1 and a.ndim > 1:
        axis, = at
        if indices[axis].size * (a.size // a.shape[axis]) > (INDEXING if axis else COPIES)[0]:
            return None

        def take(x: ndarray, index: ndarray) -> Any:
            try:
                return x.take(index, axis)
            except IndexError:
                return None

        return take
    if at != list(range(len(at))) or indices[0].size > INDEXING[0]:
        return None

    def pick(x: ndarray, *key: ndarray) -> Any:
        try:
            return asarray(x[key])
        except IndexError:
            return None

    return pick


def _embedding(weight: ndarray, indices: ndarray, **params: Any) -> Launch:
    if weight.ndim != 2 or indices.dtype is not _LONG or not indices.size or (
            indices.size * weight.shape[1] > COPIES[0]):
        return None
    size = weight.shape[0]
    return lambda x, index: None if _exceeds(index, size) else x.take(index, 0)


def _nll_loss(a: ndarray, target: Any, weight: Any, *, reduction: str, ignore_index: int) -> Launch:
    if weight is not None or a.ndim != 2 or target.__class__ is not ndarray or target.dtype is not _LONG or (
            target.shape != a.shape[:1] or not a.size or reduction not in ("mean", "sum") or ignore_index >= 0):
        return None
    n, classes = a.shape
    starts, divisor = np.arange(0, n * classes, classes), a.dtype.type(-n if reduction == "mean" else -1)

    def launch(x: ndarray, target: ndarray) -> Any:
        if _exceeds(target, classes):
            return None
        return asarray(_sum(x.take(starts + target)) / divisor)

    return launch


INDEX_MAKERS: dict[str, Callable[..., Launch]] = {
    "gather": _gather, "index": _index, "scatter": _scatter, "scatter_add": _scatter_add, "index_select": _index_select,
    "index_fill": _index_fill, "index_add": _index_add, "embedding": _embedding,
    "_nll_loss": _nll_loss}

__all__ = ["INDEX_MAKERS"]
