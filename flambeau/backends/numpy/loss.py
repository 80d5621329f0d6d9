"""Losses and embedding lookup on arrays."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...kernels import small_indexing
from ..compiled import few_positions, indexing_kernels
from ..compiled.thresholds import COPIES, INDEXING, SMALL_KERNELS
from .indexing.bounds import out_of_range

# ----- elementwise losses -------------------------------------------------------------------------


def _mse_loss_backward(g: Any, input: Any, target: Any, *, reduction: str) -> Any:
    d = input - target
    scale = g * 2
    if reduction == "mean":
        scale = scale / d.dtype.type(d.size)
    return d * scale if d.__class__ is not np.ndarray else np.multiply(d, scale, out=d)


def _clamp_below(x: Any, limit: float) -> Any:
    return np.maximum(x, limit)


def _check_probabilities(x: Any, target: Any) -> None:
    """Check that all elements of an input and a target of its shape are in [0, 1].

    Raises:
        RuntimeError: an element is not (PyTorch's text, which names the first one).
    """
    first = [np.argmin(inside) if not inside.all() else None
             for inside in ((x >= 0) & (x <= 1), (target >= 0) & (target <= 1))]
    if first[0] is not None and (first[1] is None or first[0] <= first[1]):
        raise RuntimeError("all elements of input should be between 0 and 1")
    if first[1] is not None:
        raise RuntimeError("all elements of target should be between 0 and 1")


# ----- negative log-likelihood --------------------------------------------------------------------------


def _class_positions(shape: tuple[int, ...], target: Any, ignore_index: int) -> tuple[Any, Any]:
    """Return the flat position of each target's class in an array of that shape, and a mask of the targets that are not
    ignored (None: all).

    Raises:
        IndexError: a target is not a class (PyTorch's text).
    """
    classes = shape[1] if len(shape) > 1 else shape[0]
    is_counted = None
    t = target
    if t.size and (ignore_index >= 0 or out_of_range(t, classes)):
        low, high = t.min(), t.max()
        if low < 0 or high >= classes or low <= ignore_index <= high:
            is_counted = t != ignore_index
            wrong = is_counted & ((t < 0) | (t >= classes))
            if wrong.any():
                raise IndexError(f"Target {t[wrong].flat[0]} is out of bounds.")
            t = np.where(is_counted, t, 0)
    if len(shape) == 1:
        return t, is_counted
    length = prod(shape[2:])
    flat = t.reshape(shape[0], length) * length + np.arange(length)
    flat += (np.arange(shape[0]) * (classes * length))[:, None]
    return flat.reshape(target.shape), is_counted


def _weights(target: Any, is_counted: Any, weight: Any, dtype: Any) -> Any:
    """Return the weight of each target: an array, or None for ones."""
    if weight is None:
        return None if is_counted is None else is_counted.astype(dtype)
    if is_counted is None:
        return weight.take(target)
    return np.where(is_counted, weight.take(np.where(is_counted, target, 0)), weight.dtype.type(0))


def _nll_loss(x: Any, target: Any, weight: Any, reduction: str, ignore_index: int) -> Any:
    positions, is_counted = _class_positions(x.shape, target, ignore_index)
    weights = _weights(target, is_counted, weight, x.dtype)
    loss = x.reshape(-1).take(positions)
    if weights is not None:
        loss = np.where(is_counted, loss * weights, loss.dtype.type(0)) if is_counted is not None else loss * weights
    if reduction == "none":
        return -loss
    total = -np.add.reduce(loss, None)
    if reduction == "mean":
        total = total / x.dtype.type(target.size if weights is None else np.add.reduce(weights, None))
    return total


def _nll_loss_backward(g: Any, target: Any, weight: Any, size: tuple[int, ...], reduction: str,
                       ignore_index: int) -> Any:
    positions, is_counted = _class_positions(size, target, ignore_index)
    weights = _weights(target, is_counted, weight, g.dtype)
    value = -g
    if reduction == "mean":
        value = value / g.dtype.type(target.size if weights is None else np.add.reduce(weights, None))
    if weights is not None:
        value = value * weights
    if is_counted is not None:  # 0 / 0 too, where all are ignored
        value = np.where(is_counted, value, g.dtype.type(0))
    out = np.zeros(prod(size), g.dtype)
    if is_counted is not None and len(size) == 1:
        if is_counted:
            out[positions] = value
    else:
        out[positions] = value
    return out.reshape(size)


# ----- rows of embeddings -----------------------------------------------------------------------------


def _take_rows(weight: Any, indices: Any) -> Any:
    """Return the rows at `indices`.

    Raises:
        IndexError: an index is out of range (PyTorch's text).
    """
    width = weight.shape[1:]
    kernels = indexing_kernels() if indices.size * prod(width) > COPIES[0] and weight.ndim > 1 else None
    if kernels is not None:
        flat = indices.reshape(-1)
        result = kernels.take(weight, kernels.index_along(flat, 0, weight.ndim), 0, (flat.size, *width))
        if result is not None:
            return result.reshape(*indices.shape, *width)
    if indices.size and out_of_range(indices, weight.shape[0]):
        raise IndexError("index out of range in self")
    return weight.take(indices, 0) if weight.dtype.kind != "V" else weight[indices]


def _row_weights(indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool, dtype: Any) -> Any:
    """Return the factor of each indexed row's gradient; None for ones."""
    weights = None
    if scale_grad_by_freq:
        weights = (1 / np.bincount(indices, minlength=rows).take(indices)).astype(dtype)
    if padding_idx >= 0:
        is_counted = indices != padding_idx
        weights = is_counted.astype(dtype) if weights is None else weights * is_counted
    return weights


def _add_rows(g: Any, indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    if padding_idx < 0 and not scale_grad_by_freq and SMALL_KERNELS[0] and g.ndim == indices.ndim + 1:
        few = few_positions()
        result = None if few is None else few.add_slices(indices, g, 0, (rows, g.shape[-1]))
        if result is not None:
            return result
    if padding_idx < 0 and not scale_grad_by_freq and g.size <= INDEXING[0] and g.ndim == indices.ndim + 1:
        result = small_indexing.add_rows(g, indices, rows)
        if result is not None:
            return result
    from ...kernels.scatter import index_add_rows

    flat = indices.reshape(-1)
    width = g.shape[indices.ndim:]
    values = g.reshape(flat.size, prod(width))
    weights = _row_weights(flat, rows, padding_idx, scale_grad_by_freq, g.dtype)
    if padding_idx >= 0:  # skipped, not multiplied by 0: they may be inf or nan
        flat, values = flat[flat != padding_idx], values[flat != padding_idx]
        weights = None if weights is None else weights[indices.reshape(-1) != padding_idx]
    if weights is not None and scale_grad_by_freq:
        values = values * weights[:, None]
    kernels = indexing_kernels() if values.size > INDEXING[0] else None
    result = None if kernels is None else kernels.put_into_zeros(
        kernels.index_along(flat, 0, 2), values, 0, (rows, prod(width)))
    if result is not None:
        return result.reshape(rows, *width)
    out = np.zeros((rows, prod(width)), g.dtype)
    index_add_rows(out, flat, np.ascontiguousarray(values))
    return out.reshape(rows, *width)


def _take_weighted_rows(x: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    result = x.take(indices, 0)
    weights = _row_weights(indices.reshape(-1), x.shape[0], padding_idx, scale_grad_by_freq, x.dtype)
    if weights is not None:
        result = result * weights.reshape(*indices.shape, *(1 for _ in x.shape[1:]))
    return result


def _take_flat_positions(x: Any, positions: Any) -> Any:
    result = x.reshape(-1)[np.maximum(positions, 0)]
    result[positions < 0] = np.zeros((), x.dtype)
    return result


def _add_at_flat_positions(g: Any, positions: Any, size: tuple[int, ...]) -> Any:
    out = np.zeros(prod(size), g.dtype)
    valid = positions >= 0
    np.add.at(out, positions[valid], g[valid])
    return out.reshape(size)


def _count_classes(target: Any, scores: Any, ended: bool) -> Any:
    """Return how often each of C classes occurs in the rows of (N, K) targets; up to the first -1 if `ended`.

    Raises:
        RuntimeError: a target is not a class (PyTorch's texts).
    """
    n, classes = scores.shape
    if target.size and (target.min() < (-1 if ended else 0) or target.max() >= classes):
        raise RuntimeError("argument #2 'target' is out of range" if ended else "target out of range")
    before_end = np.logical_and.accumulate(target >= 0, 1)
    row, column = np.nonzero(before_end)
    counts = np.bincount(row * classes + target[row, column], minlength=n * classes)
    return counts.astype(scores.dtype).reshape(n, classes)


PRIMITIVES = {
    "take_flat_positions": _take_flat_positions, "add_at_flat_positions": _add_at_flat_positions,
    "_mse_loss_backward": _mse_loss_backward, "clamp_below": _clamp_below,
    "check_probabilities": _check_probabilities, "nll_loss": _nll_loss, "nll_loss_backward": _nll_loss_backward,
    "count_classes": _count_classes, "take_rows": _take_rows, "add_rows": _add_rows,
    "take_weighted_rows": _take_weighted_rows,
}
