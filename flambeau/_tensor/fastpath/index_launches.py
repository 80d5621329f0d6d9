"""Launches of gathers and scatters on small arrays: flat positions from offsets that the layouts determine.

A launch returns None where an index is out of range: the operator itself then raises.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ... import codegen
from ...backends.compiled.thresholds import COPIES, INDEXING
from ...codegen.indexing import flat_positions
from ...dtypes import BFLOAT16
from ...kernels.small_indexing import exceeds as _exceeds
from ...runtime.filling import Filling, NewArray, with_filling
from ...shapes import contiguous_strides, wrap_dim

ndarray = np.ndarray
asarray, empty = np.asarray, np.empty
_LONG, _F32 = np.dtype(np.int64), np.dtype(np.float32)
#: the least bytes of a row that is copied as a block
_LONG_ROW = 64
Launch = Callable[..., Any] | None


def _moving(action: str, a: ndarray, index: ndarray, axis: int, bases: ndarray, picks: ndarray, number: Any = 0,
            wraps: bool = False) -> Launch:
    """The launch that moves elements between arrays of a layout and their places along an axis.

    Args:
        action: of `flat_positions`.
        bases, picks: for each element that is moved, its position without the axis, and the number of its index.
    """
    if not codegen.available() or bases.size > flat_positions.MOST or not (
            a.flags.c_contiguous and index.flags.c_contiguous) or a.dtype.char not in "fdl" or (
            action in _COMPUTING and a.dtype.char == "l"):
        return None
    shape, dtype = (bases.shape if action == flat_positions.GATHER else a.shape), a.dtype
    places, numbers = (np.ascontiguousarray(each, np.int64).reshape(-1) for each in (bases, picks))
    move, owners = flat_positions.function(
        action, dtype, places, numbers, [(a.shape[axis], contiguous_strides(a.shape)[axis])], a.size, number, wraps)
    sources = (0, 1, 2) if action in (flat_positions.REPLACE, flat_positions.ADD) else (0, 1)

    def launch(*arrays: ndarray, _owners: Any = owners) -> Any:
        return move(None, empty(shape, dtype), *arrays)

    return with_filling(launch, Filling(move, ([None], NewArray(shape, dtype), *sources), owners))


#: what writes numbers that are no elements, or adds
_COMPUTING = (flat_positions.FILL, flat_positions.ADD)


def _along(action: str, a: ndarray, index: Any, dim: int, number: Any = 0) -> Launch:
    """`_moving` by an index with a number for each element."""
    if index.__class__ is not ndarray or index.dtype is not _LONG or not a.ndim or index.ndim != a.ndim or (
            not index.size or index.size > flat_positions.MOST or not a.size):
        return None
    axis = wrap_dim(dim, a.ndim)
    bases = np.zeros(index.shape, np.int64)
    for d, (n, step) in enumerate(zip(index.shape, contiguous_strides(a.shape), strict=True)):
        if d != axis:
            bases += (np.arange(n) * step).reshape(-1, *(1,) * (a.ndim - 1 - d))
    return _moving(action, a, index, axis, bases, np.arange(index.size), number)


def _slices(action: str, a: ndarray, index: ndarray, axis: int, number: Any = 0, wraps: bool = False) -> Launch:
    """`_moving` by an index with a number for each slice along an axis."""
    rest = a.shape[axis + 1:]
    if action == flat_positions.GATHER:
        launch = _rows(a, index, axis, wraps)
        if launch is not None:
            return launch
    shape = (*a.shape[:axis], index.size, *rest)
    if prod(shape) > flat_positions.MOST:
        return None
    places = np.arange(prod(a.shape[:axis])).reshape(-1, 1) * (a.shape[axis] * prod(rest)) + np.arange(prod(rest))
    bases = np.broadcast_to(places.reshape(*a.shape[:axis], 1, *rest), shape)
    picks = np.broadcast_to(np.arange(index.size).reshape(-1, *(1,) * len(rest)), shape)
    return _moving(action, a, index, axis, bases.reshape(*a.shape[:axis], *index.shape, *rest), picks, number, wraps)


def _rows(a: ndarray, index: ndarray, axis: int, wraps: bool) -> Launch:
    """The launch that copies rows of enough bytes; None for others."""
    row = prod(a.shape[axis + 1:]) * a.itemsize
    if row < _LONG_ROW or not codegen.available() or not (a.flags.c_contiguous and index.flags.c_contiguous):
        return None
    from ...codegen.indexing import picked_rows

    pick = picked_rows.function(prod(a.shape[:axis]), index.size, a.shape[axis], row, wraps)
    shape, dtype = (*a.shape[:axis], *index.shape, *a.shape[axis + 1:]), a.dtype
    return with_filling(lambda x, index: pick(None, empty(shape, dtype), x, index),
                        Filling(pick, ([None], NewArray(shape, dtype), 0, 1)))


def _gather(a: ndarray, index: ndarray, dim: int, sparse_grad: bool = False) -> Launch:
    return _along(flat_positions.GATHER, a, index, dim)


def _scatter(a: ndarray, index: ndarray, src: Any = None, *, dim: int, value: Any = None) -> Launch:
    if a.dtype.kind != "f":
        return None
    if src is None:
        return _along(flat_positions.FILL, a, index, dim, value)
    if index.shape != src.shape or a.dtype is not src.dtype or not src.flags.c_contiguous:
        return None
    return _along(flat_positions.REPLACE, a, index, dim)


def _scatter_add(a: ndarray, index: ndarray, src: ndarray, dim: int) -> Launch:
    if index.shape != src.shape or a.dtype is not src.dtype or a.dtype.kind != "f" or not src.flags.c_contiguous:
        return None
    return _along(flat_positions.ADD, a, index, dim)


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
    return _slices(flat_positions.GATHER, a, index, axis) or (
        lambda x, index: None if _exceeds(index, size) else x.take(index, axis))


def _index_fill(a: ndarray, index: ndarray, value: Any, dim: int) -> Launch:
    axis = _vector(a, index, dim)
    if axis is None or a.dtype.kind != "f" or value.__class__ is ndarray:
        return None
    return _slices(flat_positions.FILL, a, index, axis, value)


def _index_add(a: ndarray, index: ndarray, source: ndarray, dim: int, alpha: Any = 1) -> Launch:
    axis = _vector(a, index, dim)
    if axis is None or alpha != 1 or a.dtype is not source.dtype or a.dtype.kind != "f" or (
            source.shape != (*a.shape[:axis], index.size, *a.shape[axis + 1:])) or not source.flags.c_contiguous:
        return None
    return _slices(flat_positions.ADD, a, index, axis)


def _index(a: ndarray, *indices: Any) -> Launch:
    at = [i for i, index in enumerate(indices) if index is not None]
    if not a.size or not a.flags.c_contiguous or any(
            indices[i].__class__ is not ndarray or indices[i].dtype is not _LONG or not indices[i].size for i in at):
        return None
    if len(at) == 1 and a.ndim > 1:
        axis, = at
        if indices[axis].size * (a.size // a.shape[axis]) > (INDEXING if axis else COPIES)[0]:
            return None
        launch = _slices(flat_positions.GATHER, a, indices[axis], axis, wraps=True)
        if launch is not None:
            return launch

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


def one_hot(a: ndarray, classes: int) -> Launch:
    """The launch that sets one of so many numbers to 1 for each of an array of int64 classes; None: there is none."""
    if a.dtype is not _LONG or not a.size or not a.flags.c_contiguous or not codegen.available() or (
            a.size * classes > 4 * flat_positions.MOST or a.size > flat_positions.MOST):
        return None
    shape, zero = (*a.shape, classes), np.zeros(a.size * classes, np.int64)
    places = np.arange(a.size)
    bases = places * classes
    move, owners = flat_positions.function(flat_positions.FILL, _LONG, bases, places, [(classes, 1)], zero.size, 1)
    return with_filling(lambda x, _owners=owners: move(None, empty(shape, _LONG), zero, x),
                        Filling(move, ([None], NewArray(shape, _LONG), [zero], 0), owners))


def _embedding(weight: ndarray, indices: ndarray, **params: Any) -> Launch:
    if weight.ndim != 2 or indices.dtype is not _LONG or not indices.size or (
            indices.size * weight.shape[1] > COPIES[0]):
        return None
    size = weight.shape[0]
    return _slices(flat_positions.GATHER, weight, indices, 0) or (
        lambda x, index: None if _exceeds(index, size) else x.take(index, 0))


def target_loss(a: ndarray, target: Any, weight: Any, *, reduction: str, ignore_index: int) -> Launch:
    """The launch of the sum or mean of negative log likelihoods in a matrix; of 16 bits, in float32 before rounding."""
    if weight is not None or a.ndim != 2 or target.__class__ is not ndarray or target.dtype is not _LONG or (
            target.shape != a.shape[:1] or not a.size or reduction not in ("mean", "sum")) or not (
            codegen.available() and a.flags.c_contiguous and target.flags.c_contiguous):
        return None
    from ...codegen.indexing import target_losses

    char = target_losses.BFLOAT16 if a.dtype == BFLOAT16 else a.dtype.char
    if char not in (target_losses.BFLOAT16, target_losses.HALF, "f", "d"):
        return None
    (n, classes), dtype = a.shape, a.dtype if char in "fd" else _F32
    add = target_losses.function(char, n, classes, ignore_index, reduction == "mean")
    result, picked = NewArray((), dtype), NewArray((n,), dtype)
    return with_filling(lambda x, target: add(None, empty((), dtype), empty(n, dtype), x, target),
                        Filling(add, ([None], result, picked, 0, 1)))


def _nll_loss(a: ndarray, target: Any, weight: Any, **params: Any) -> Launch:
    return target_loss(a, target, weight, **params) if a.dtype.char in "fd" else None


INDEX_MAKERS: dict[str, Callable[..., Launch]] = {
    "gather": _gather, "index": _index, "scatter": _scatter, "scatter_add": _scatter_add, "index_select": _index_select,
    "index_fill": _index_fill, "index_add": _index_add, "embedding": _embedding,
    "_nll_loss": _nll_loss}

__all__ = ["INDEX_MAKERS", "one_hot"]
