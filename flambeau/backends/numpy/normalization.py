"""Normalization on arrays: the statistics once, then as few passes as the formulas allow.

A block of rows at a time would stay in the cache; NumPy's passes over whole arrays are so few here that
the calls for each block would cost more.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

_mean = np.add.reduce


def _statistics(rows: Any, axis: Any, shape: tuple[int, ...], count: int, eps: float) -> tuple[Any, Any, Any]:
    """rows - mean, the mean and 1 / √(var + eps) over `axis`; both without it."""
    dtype = rows.dtype.type
    with np.errstate(all="ignore"):
        mean = _mean(rows, axis) / dtype(count)
        centred = rows - mean.reshape(shape)
        letters = "abc"[:rows.ndim]
        kept = "".join(c for i, c in enumerate(letters) if i not in (axis if isinstance(axis, tuple) else (axis,)))
        variance = np.einsum(f"{letters},{letters}->{kept}", centred, centred) / dtype(count)
        return centred, mean, variance


# ----- by channel -----------------------------------------------------------------------


def _by_channel(x: Any) -> Any:
    """(N, C, *spatial) as (N, C, positions)."""
    return x.reshape(x.shape[0], x.shape[1], prod(x.shape[2:]))


def _batch_norm(x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, eps: float,
                kept: list[Any]) -> Any:
    if not x.size:
        nothing = np.zeros(x.shape[1] if x.ndim > 1 else 0, x.dtype)
        kept[:] = (nothing, nothing, nothing)
        return x.copy()
    rows = _by_channel(x)
    n, c, length = rows.shape
    across = (1, c, 1)
    if training:
        centred, mean, variance = _statistics(rows, (0, 2), across, n * length, eps)
        rstd = 1 / np.sqrt(variance + eps).astype(x.dtype, copy=False)
        kept[:] = (mean, rstd, variance)
    else:
        mean = np.asarray(running_mean, x.dtype)
        rstd = (1 / np.sqrt(np.asarray(running_var) + eps)).astype(x.dtype, copy=False)
        kept[:] = (mean, rstd)
        centred = rows - mean.reshape(across)
    scale = rstd if weight is None else rstd * weight
    out = np.multiply(centred, scale.reshape(across), out=centred)
    if bias is not None:
        np.add(out, bias.reshape(across), out=out)
    return out.reshape(x.shape)


def _batch_norm_backward(g: Any, x: Any, weight: Any = None, *, training: bool, eps: float, kept: list[Any],
                         needs: Any) -> Any:
    if not x.size:
        return g.copy(), np.zeros_like(kept[0]), np.zeros_like(kept[0])
    rows, flat = _by_channel(x), _by_channel(g)
    n, c, length = rows.shape
    across = (1, c, 1)
    mean, rstd = kept[0], kept[1]
    y = rows - mean.reshape(across)
    total = _mean(flat, (0, 2)) if needs[2] or training else None
    along = np.einsum("abc,abc->b", flat, y) * rstd if needs[1] or training else None  # Σ g · y
    by_input = None
    if needs[0]:
        scale = rstd if weight is None else rstd * weight
        if training:
            count = x.dtype.type(n * length)
            np.multiply(y, (along * rstd / count).reshape(across), out=y)
            np.subtract(flat, y, out=y)
            np.subtract(y, (total / count).reshape(across), out=y)
            by_input = np.multiply(y, scale.reshape(across), out=y).reshape(x.shape)
        else:
            by_input = np.multiply(flat, scale.reshape(across), out=y).reshape(x.shape)
    return by_input, along if needs[1] else None, total if needs[2] else None


# ----- over the last dimensions ---------------------------------------------------------


def _row_sums(a: Any, b: Any) -> Any:
    """Σ a · b over the last axis, kept."""
    return np.einsum("ab,ab->a", a, b)[:, None]


def _layer_norm(x: Any, weight: Any, bias: Any, normalized_shape: Any, eps: float, kept: list[Any]) -> Any:
    size = prod(normalized_shape)
    rows = x.reshape(-1, size) if size else x.reshape(prod(x.shape[:x.ndim - len(normalized_shape)]), 0)
    centred, mean, variance = _statistics(rows, 1, (-1, 1), size, eps)
    rstd = 1 / np.sqrt(variance + eps).astype(x.dtype, copy=False)
    kept[:] = (mean, rstd)
    out = np.multiply(centred, rstd[:, None], out=centred)
    if weight is not None:
        np.multiply(out, weight.reshape(-1), out=out)
    if bias is not None:
        np.add(out, bias.reshape(-1), out=out)
    return out.reshape(x.shape)


def _layer_norm_backward(g: Any, x: Any, weight: Any = None, *, normalized_shape: Any, eps: float, kept: list[Any],
                         needs: Any) -> Any:
    size = prod(normalized_shape)
    mean, rstd = kept[0][:, None], kept[1][:, None]
    count = mean.shape[0]
    rows, flat = x.reshape(count, size), g.reshape(count, size)
    y = rows - mean
    np.multiply(y, rstd, out=y)
    by_weight = np.einsum("ab,ab->b", flat, y).reshape(normalized_shape) if needs[1] else None
    by_bias = _mean(flat, 0).reshape(normalized_shape) if needs[2] else None
    by_input = None
    if needs[0]:
        scaled = flat if weight is None else flat * weight.reshape(-1)
        along = _row_sums(scaled, y) / x.dtype.type(size)
        np.multiply(y, along, out=y)
        np.subtract(scaled, y, out=y)
        np.subtract(y, _mean(scaled, 1)[:, None] / x.dtype.type(size), out=y)
        by_input = np.multiply(y, rstd, out=y).reshape(x.shape)
    return by_input, by_weight, by_bias


# ----- by group of channels -------------------------------------------------------------


def _group_norm(x: Any, weight: Any, bias: Any, group: int, eps: float, kept: list[Any]) -> Any:
    n, c = x.shape[:2]
    length = prod(x.shape[2:])
    size = c // group * length
    centred, mean, variance = _statistics(x.reshape(n * group, size), 1, (-1, 1), size, eps)
    rstd = 1 / np.sqrt(variance + eps).astype(x.dtype, copy=False)
    kept[:] = (mean, rstd)
    np.multiply(centred, rstd[:, None], out=centred)
    out = centred.reshape(n, c, length)
    if weight is not None:
        np.multiply(out, weight.reshape(1, c, 1), out=out)
    if bias is not None:
        np.add(out, bias.reshape(1, c, 1), out=out)
    return out.reshape(x.shape)


def _group_norm_backward(g: Any, x: Any, weight: Any = None, *, group: int, eps: float, kept: list[Any],
                         needs: Any) -> Any:
    n, c = x.shape[:2]
    length = prod(x.shape[2:])
    size = c // group * length
    mean, rstd = kept[0][:, None], kept[1][:, None]
    y = x.reshape(n * group, size) - mean
    np.multiply(y, rstd, out=y)
    flat = g.reshape(n, c, length)
    by_weight = np.einsum("abc,abc->b", flat, y.reshape(n, c, length)) if needs[1] else None
    by_bias = _mean(flat, (0, 2)) if needs[2] else None
    by_input = None
    if needs[0]:
        scaled = (flat if weight is None else flat * weight.reshape(1, c, 1)).reshape(n * group, size)
        np.multiply(y, _row_sums(scaled, y) / x.dtype.type(size), out=y)
        np.subtract(scaled, y, out=y)
        np.subtract(y, _mean(scaled, 1)[:, None] / x.dtype.type(size), out=y)
        by_input = np.multiply(y, rstd, out=y).reshape(x.shape)
    return by_input, by_weight, by_bias


PRIMITIVES = {
    "batch_norm": _batch_norm, "_batch_norm_backward": _batch_norm_backward, "layer_norm": _layer_norm,
    "_layer_norm_backward": _layer_norm_backward, "group_norm": _group_norm,
    "_group_norm_backward": _group_norm_backward,
}
