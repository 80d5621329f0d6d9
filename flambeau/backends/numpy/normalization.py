"""Batch, layer and group normalization on arrays, with few passes over memory.

Rows are processed in blocks that fit in a core's cache.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

_add = np.add.reduce


# ----- batch normalization -----------------------------------------------------------------------


def _by_channel(x: Any) -> Any:
    """Return (N, C, *spatial) as (N, C, positions)."""
    return x.reshape(x.shape[0], x.shape[1], prod(x.shape[2:]))


def _batch_norm(x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, eps: float,
                saved: list[Any]) -> Any:
    if not x.size:
        empty = np.zeros(x.shape[1] if x.ndim > 1 else 0, x.dtype)
        saved[:] = (empty, empty, empty)
        return x.copy()
    rows = _by_channel(x)
    n, c, length = rows.shape
    channel_shape = (1, c, 1)
    if training:
        count = x.dtype.type(n * length)
        mean = _add(rows, (0, 2)) / count
        centered = rows - mean.reshape(channel_shape)
        variance = np.einsum("abc,abc->b", centered, centered) / count
        rstd = 1 / np.sqrt(variance + eps).astype(x.dtype, copy=False)
        saved[:] = (mean, rstd, variance)
    else:
        mean = np.asarray(running_mean, x.dtype)
        rstd = (1 / np.sqrt(np.asarray(running_var) + eps)).astype(x.dtype, copy=False)
        saved[:] = (mean, rstd)
        centered = rows - mean.reshape(channel_shape)
    scale = rstd if weight is None else rstd * weight
    out = np.multiply(centered, scale.reshape(channel_shape), out=centered)
    if bias is not None:
        np.add(out, bias.reshape(channel_shape), out=out)
    return out.reshape(x.shape)


def _batch_norm_backward(g: Any, x: Any, weight: Any = None, *, training: bool, eps: float, saved: list[Any],
                         needs: Any) -> Any:
    if not x.size:
        return g.copy(), np.zeros_like(saved[0]), np.zeros_like(saved[0])
    rows, flat = _by_channel(x), _by_channel(g)
    n, c, length = rows.shape
    channel_shape = (1, c, 1)
    mean, rstd = saved[0], saved[1]
    y = rows - mean.reshape(channel_shape)
    total = _add(flat, (0, 2)) if needs[2] or training else None
    weighted_total = np.einsum("abc,abc->b", flat, y) * rstd if needs[1] or training else None  # Σ g · y
    by_input = None
    if needs[0]:
        scale = rstd if weight is None else rstd * weight
        if training:
            count = x.dtype.type(n * length)
            np.multiply(y, (weighted_total * rstd / count).reshape(channel_shape), out=y)
            np.subtract(flat, y, out=y)
            np.subtract(y, (total / count).reshape(channel_shape), out=y)
            by_input = np.multiply(y, scale.reshape(channel_shape), out=y).reshape(x.shape)
        else:
            by_input = np.multiply(flat, scale.reshape(channel_shape), out=y).reshape(x.shape)
    return by_input, weighted_total if needs[1] else None, total if needs[2] else None


# ----- layer normalization ---------------------------------------------------------


BLOCK_BYTES = 1 << 18
#: elements from which on a row is repeated
TILED_FROM = 1 << 13


def _blocks(rows: Any) -> list[slice]:
    """Return slices of rows, each as large as fits in a core's cache."""
    count = rows.shape[0]
    step = max(1, BLOCK_BYTES // max(1, rows.shape[1] * rows.itemsize))
    if 0 < count <= step:
        return [slice(0, count)]
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _ones(size: int, dtype: np.dtype) -> Any:
    return _few_ones(size, dtype) if size <= 1024 else np.ones(size, dtype)


@functools.lru_cache(256)
def _few_ones(size: int, dtype: np.dtype) -> Any:
    return np.ones(size, dtype)


def _tiled(row: Any, rows: Any) -> Any:
    """Return a row repeated for each row of a block: NumPy multiplies equal shapes twice as fast as broadcast ones.

    One row, for all of them, where there are so few elements that the repetition takes longer.
    """
    if row is None:
        return None
    flat = row.reshape(1, -1)
    if rows.size < TILED_FROM:
        return flat
    block = _blocks(rows)[:1]
    tiled = np.empty((block[0].stop if block else 0, flat.shape[1]), row.dtype)
    tiled[...] = flat
    return tiled


def _standardize_rows(rows: Any, weight: Any, bias: Any, eps: float, out: Any) -> tuple[Any, Any]:
    """Write each row, standardized, scaled and shifted, to `out`; return the means and 1 / √(var + eps)."""
    size = rows.dtype.type(rows.shape[1])
    mean, rstd = np.empty(rows.shape[0], rows.dtype), np.empty(rows.shape[0], rows.dtype)
    ones = _ones(rows.shape[1], rows.dtype)
    weight, bias = _tiled(weight, rows), _tiled(bias, rows)
    for block in _blocks(rows):
        x, y = rows[block], out[block]
        m = np.divide(np.dot(x, ones), size, out=mean[block])
        np.subtract(x, m[:, None], out=y)
        r = rstd[block]
        np.divide(np.vecdot(y, y), size, out=r)
        np.add(r, eps, out=r)
        np.sqrt(r, out=r)
        np.reciprocal(r, out=r)
        np.multiply(y, r[:, None], out=y)
        if weight is not None:
            np.multiply(y, weight[:len(y)], out=y)
        if bias is not None:
            np.add(y, bias[:len(y)], out=y)
    return mean, rstd


def _standardize_rows_backward(scaled: Any, y: Any, rstd: Any, out: Any) -> Any:
    """Return the gradient of rows from that of their standardized rows `y`, for a block; `out` may be `y`."""
    size = y.dtype.type(y.shape[1])
    projection = np.vecdot(scaled, y)[:, None] / size
    total = np.dot(scaled, _ones(y.shape[1], y.dtype))[:, None] / size
    np.multiply(y, projection, out=out)
    np.add(out, total, out=out)
    np.subtract(scaled, out, out=out)
    return np.multiply(out, rstd, out=out)


def _layer_norm(x: Any, weight: Any, bias: Any, normalized_shape: Any, eps: float, saved: list[Any]) -> Any:
    size = prod(normalized_shape)
    rows = x.reshape(prod(x.shape[:x.ndim - len(normalized_shape)]), size)
    out = np.empty(rows.shape, x.dtype)
    saved[:] = _standardize_rows(rows, weight, bias, eps, out)
    return out.reshape(x.shape)


def _layer_norm_backward(g: Any, x: Any, weight: Any = None, *, normalized_shape: Any, eps: float, saved: list[Any],
                         needs: Any) -> Any:
    size = prod(normalized_shape)
    mean, rstd = saved[0][:, None], saved[1][:, None]
    rows, flat = x.reshape(mean.shape[0], size), g.reshape(mean.shape[0], size)
    # gradients own their memory: leaves take them over
    input_gradient = np.empty(x.shape, x.dtype) if needs[0] else None
    weight_gradient = np.zeros(normalized_shape, x.dtype) if needs[1] else None
    bias_gradient = np.zeros(normalized_shape, x.dtype) if needs[2] else None
    by_input = None if input_gradient is None else input_gradient.reshape(rows.shape)
    by_weight = None if weight_gradient is None else weight_gradient.reshape(size)
    by_bias = None if bias_gradient is None else bias_gradient.reshape(size)
    factor = _tiled(weight, rows)
    for block in _blocks(rows):
        grad_block = flat[block]
        ones = _ones(len(grad_block), x.dtype)
        if by_bias is not None:
            by_bias += np.dot(ones, grad_block)
        if by_weight is None and by_input is None:
            continue
        y = rows[block] - mean[block]
        np.multiply(y, rstd[block], out=y)
        if by_weight is not None:
            by_weight += np.dot(ones, grad_block * y)
        if by_input is not None:
            _standardize_rows_backward(grad_block if factor is None else grad_block * factor[:len(y)], y, rstd[block],
                                       by_input[block])
    return input_gradient, weight_gradient, bias_gradient


# ----- group normalization -------------------------------------------------------------


def _group_norm(x: Any, weight: Any, bias: Any, group: int, eps: float, saved: list[Any]) -> Any:
    n, c = x.shape[:2]
    length = prod(x.shape[2:])
    rows = x.reshape(n * group, c // group * length)
    out = np.empty(rows.shape, x.dtype)
    saved[:] = _standardize_rows(rows, None, None, eps, out)
    by_channel = out.reshape(n, c, length)
    if weight is not None:
        np.multiply(by_channel, weight.reshape(1, c, 1), out=by_channel)
    if bias is not None:
        np.add(by_channel, bias.reshape(1, c, 1), out=by_channel)
    return out.reshape(x.shape)


def _group_norm_backward(g: Any, x: Any, weight: Any = None, *, group: int, eps: float, saved: list[Any],
                         needs: Any) -> Any:
    n, c = x.shape[:2]
    length = prod(x.shape[2:])
    size = c // group * length
    mean, rstd = saved[0][:, None], saved[1][:, None]
    y = x.reshape(n * group, size) - mean
    np.multiply(y, rstd, out=y)
    flat = g.reshape(n, c, length)
    by_weight = np.einsum("abc,abc->b", flat, y.reshape(n, c, length)) if needs[1] else None
    by_bias = _add(flat, (0, 2)) if needs[2] else None
    by_input = None
    if needs[0]:
        scaled = (flat if weight is None else flat * weight.reshape(1, c, 1)).reshape(n * group, size)
        by_input = _standardize_rows_backward(scaled, y, rstd, y).reshape(x.shape)
    return by_input, by_weight, by_bias


PRIMITIVES = {
    "batch_norm": _batch_norm, "_batch_norm_backward": _batch_norm_backward, "layer_norm": _layer_norm,
    "_layer_norm_backward": _layer_norm_backward, "group_norm": _group_norm,
    "_group_norm_backward": _group_norm_backward,
}
