"""Losses on arrays, and the rows that embeddings look up."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..compiled import indexer
from ..compiled.thresholds import INDEXED, MOVES

# ----- elements -------------------------------------------------------------------------


def _mse_loss_backward(g: Any, input: Any, target: Any, *, reduction: str) -> Any:
    d = input - target
    scale = g * 2
    if reduction == "mean":
        scale = scale / d.dtype.type(d.size)
    return d * scale if d.__class__ is not np.ndarray else np.multiply(d, scale, out=d)


def _clamp_below(x: Any, limit: float) -> Any:
    return np.maximum(x, limit)


def _check_probabilities(x: Any) -> None:
    """Refuse elements outside [0, 1].

    Raises:
        RuntimeError: there is one (PyTorch's text).
    """
    if not ((x >= 0) & (x <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")


# ----- classes --------------------------------------------------------------------------


def _places(shape: tuple[int, ...], target: Any, ignore_index: int) -> tuple[Any, Any]:
    """Flat positions of each target's class in an array of that shape, and where targets count (None: all do).

    Raises:
        IndexError: a target is no class (PyTorch's text).
    """
    classes = shape[1] if len(shape) > 1 else shape[0]
    counts = None
    t = target
    if t.size:
        low, high = t.min(), t.max()
        if low < 0 or high >= classes or low <= ignore_index <= high:
            counts = t != ignore_index
            wrong = counts & ((t < 0) | (t >= classes))
            if wrong.any():
                raise IndexError(f"Target {t[wrong].flat[0]} is out of bounds.")
            t = np.where(counts, t, 0)
    if len(shape) == 1:
        return t, counts
    length = prod(shape[2:])
    flat = t.reshape(shape[0], length) * length + np.arange(length)
    flat += (np.arange(shape[0]) * (classes * length))[:, None]
    return flat.reshape(target.shape), counts


def _weights(target: Any, counts: Any, weight: Any, dtype: Any) -> Any:
    """The weight of each target: an array, or None for ones."""
    if weight is None:
        return None if counts is None else counts.astype(dtype)
    if counts is None:
        return weight.take(target)
    return np.where(counts, weight.take(np.where(counts, target, 0)), weight.dtype.type(0))


def _pick_classes(x: Any, target: Any, weight: Any, reduction: str, ignore_index: int) -> Any:
    places, counts = _places(x.shape, target, ignore_index)
    weights = _weights(target, counts, weight, x.dtype)
    loss = x.reshape(-1).take(places)
    if weights is not None:
        loss = np.where(counts, loss * weights, loss.dtype.type(0)) if counts is not None else loss * weights
    if reduction == "none":
        return -loss
    total = -np.add.reduce(loss, None)
    if reduction == "mean":
        total = total / x.dtype.type(target.size if weights is None else np.add.reduce(weights, None))
    return total


def _place_classes(g: Any, target: Any, weight: Any, size: tuple[int, ...], reduction: str, ignore_index: int) -> Any:
    places, counts = _places(size, target, ignore_index)
    weights = _weights(target, counts, weight, g.dtype)
    value = -g
    if reduction == "mean":
        value = value / g.dtype.type(target.size if weights is None else np.add.reduce(weights, None))
    if weights is not None:
        value = value * weights
    if counts is not None:  # also where the mean is over nothing
        value = np.where(counts, value, g.dtype.type(0))
    out = np.zeros(prod(size), g.dtype)
    if counts is not None and len(size) == 1:
        if counts:
            out[places] = value
    else:
        out[places] = value
    return out.reshape(size)


# ----- rows -----------------------------------------------------------------------------


def _take_rows(weight: Any, indices: Any) -> Any:
    """The rows that `indices` name.

    Raises:
        IndexError: there is no such row (PyTorch's text).
    """
    width = weight.shape[1:]
    by = indexer() if indices.size * prod(width) > MOVES[0] and weight.ndim > 1 else None
    if by is not None:
        flat = indices.reshape(-1)
        found = by.taken(weight, by.along(flat, 0, weight.ndim), 0, (flat.size, *width))
        if found is not None:
            return found.reshape(*indices.shape, *width)
    if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        raise IndexError("index out of range in self")
    return weight.take(indices, 0) if weight.dtype.kind != "V" else weight[indices]


def _row_weights(indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool, dtype: Any) -> Any:
    """What each named row's gradient is multiplied by; None for ones."""
    weights = None
    if scale_grad_by_freq:
        weights = (1 / np.bincount(indices, minlength=rows).take(indices)).astype(dtype)
    if padding_idx >= 0:
        counts = indices != padding_idx
        weights = counts.astype(dtype) if weights is None else weights * counts
    return weights


def _add_rows(g: Any, indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    from ...kernels.scatter import index_add_rows

    flat = indices.reshape(-1)
    width = g.shape[indices.ndim:]
    values = g.reshape(flat.size, prod(width))
    weights = _row_weights(flat, rows, padding_idx, scale_grad_by_freq, g.dtype)
    if weights is not None:
        values = values * weights[:, None]
    by = indexer() if values.size > INDEXED[0] else None
    found = None if by is None else by.placed(by.along(flat, 0, 2), values, 0, (rows, prod(width)))
    if found is not None:
        return found.reshape(rows, *width)
    out = np.zeros((rows, prod(width)), g.dtype)
    index_add_rows(out, flat, np.ascontiguousarray(values))
    return out.reshape(rows, *width)


def _take_weighted_rows(x: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    found = x.take(indices, 0)
    weights = _row_weights(indices.reshape(-1), x.shape[0], padding_idx, scale_grad_by_freq, x.dtype)
    if weights is not None:
        found = found * weights.reshape(*indices.shape, *(1 for _ in x.shape[1:]))
    return found


def _take_places(x: Any, places: Any) -> Any:
    found = x.reshape(-1)[np.maximum(places, 0)]
    found[places < 0] = np.zeros((), x.dtype)
    return found


def _scatter_flat(g: Any, places: Any, size: tuple[int, ...]) -> Any:
    out = np.zeros(prod(size), g.dtype)
    there = places >= 0
    np.add.at(out, places[there], g[there])
    return out.reshape(size)


def _count_classes(target: Any, scores: Any, ended: bool) -> Any:
    """(N, K) classes beside (N, C) scores: how often each class is named, up to the first -1 of a row if `ended`.

    Raises:
        RuntimeError: a target is no class (PyTorch's texts).
    """
    n, classes = scores.shape
    if target.size and (target.min() < (-1 if ended else 0) or target.max() >= classes):
        raise RuntimeError("argument #2 'target' is out of range" if ended else "target out of range")
    before_end = np.logical_and.accumulate(target >= 0, 1)
    row, place = np.nonzero(before_end)
    counts = np.bincount(row * classes + target[row, place], minlength=n * classes)
    return counts.astype(scores.dtype).reshape(n, classes)


PRIMITIVES = {
    "take_places": _take_places, "put_places": _scatter_flat,
    "_mse_loss_backward": _mse_loss_backward, "clamp_below": _clamp_below,
    "check_probabilities": _check_probabilities, "pick_classes": _pick_classes, "place_classes": _place_classes,
    "count_classes": _count_classes, "take_rows": _take_rows, "add_rows": _add_rows,
    "take_weighted_rows": _take_weighted_rows,
}
