"""Reductions of segments, hashes and histograms of several dimensions on arrays."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import wrap_dims

_INITIAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}
_UFUNCS: dict[str, Any] = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def _segments(lengths: Any) -> Iterator[tuple[int, int, slice]]:
    """(row, segment, its slice of the data) for all segments."""
    for row, sizes in enumerate(lengths.reshape(prod(lengths.shape[:-1]), lengths.shape[-1])):
        start = 0
        for i, size in enumerate(sizes.tolist()):
            yield row, i, slice(start, start + size)
            start += size


def _rows(x: Any, axis: int) -> Any:
    """The array with the dimensions before `axis` as one."""
    return x.reshape(prod(x.shape[:axis]), *x.shape[axis:])


def _segment_reduce(data: Any, lengths: Any, reduce: str, axis: int, initial: Any) -> Any:
    out = np.empty((*data.shape[:axis], lengths.shape[-1], *data.shape[axis + 1:]), data.dtype)
    rows, target = _rows(dtypes.widen(data), axis), _rows(out, axis)
    ufunc, start = _UFUNCS[reduce], _INITIAL[reduce] if initial is None else initial
    for row, i, part in _segments(lengths):
        values = rows[row, part]
        total = ufunc(ufunc.reduce(values, 0), start) if len(values) else np.full(values.shape[1:], start)
        if reduce == "mean":
            total = total / len(values) if len(values) else total if initial is not None else np.nan
        target[row, i] = dtypes.cast(np.asarray(total, rows.dtype), data.dtype)
    return out


def _segment_reduce_backward(g: Any, data: Any, lengths: Any, out: Any, reduce: str, axis: int, initial: Any) -> Any:
    result = np.zeros(data.shape, data.dtype)
    target, values, results, grads = (_rows(dtypes.widen(x) if x is not result else x, axis)
                                      for x in (result, data, out, g))
    start = 1.0 if initial is None else initial
    for row, i, part in _segments(lengths):
        x, y, by = values[row, part], results[row, i], grads[row, i]
        if not len(x):
            continue
        if reduce == "sum":
            value = np.broadcast_to(by, x.shape)
        elif reduce == "mean":
            value = np.broadcast_to(by / len(x), x.shape)
        elif reduce == "prod":
            others = np.empty_like(x)
            for k in range(len(x)):
                others[k] = np.multiply.reduce(np.delete(x, k, 0), 0) * start
            value = np.where((x == 0) | np.isnan(x), others, y / np.where(x == 0, 1, x)) * by
        else:
            same = (x == y) | np.isnan(x)
            value = np.where(same, by / np.maximum(same.sum(0), 1), 0)
        target[row, part] = dtypes.cast(np.asarray(value, values.dtype), data.dtype)
    return result


def _hash_bits(x: Any, dim: Any, keepdim: bool) -> Any:
    if x.dtype.kind == "f" or x.dtype in dtypes.NARROW:
        bits = dtypes.widen(x).astype(np.float64).view(np.uint64)
    else:
        bits = x.astype(np.int64).view(np.uint64) if x.dtype.kind != "u" else x.astype(np.uint64)
    dims = wrap_dims(dim, x.ndim)
    reduced: Any = np.bitwise_xor.reduce
    return np.asarray(reduced(bits, tuple(dims), keepdims=keepdim)) if x.ndim else bits


def _histogramdd(x: Any, weight: Any, edges: Any, uniform: bool) -> Any:
    """Counts, or sums of weights, of the rows of (n, d) in the bins between edges of each dimension."""
    inside = np.ones(len(x), bool)
    places = []
    for i, e in enumerate(edges):
        column = x[:, i]
        with np.errstate(invalid="ignore"):
            inside &= (column >= e[0]) & (column <= e[-1])
        places.append(np.minimum(np.searchsorted(e, column, "right") - 1, len(e) - 2))
    shape = tuple(len(e) - 1 for e in edges)
    flat = np.ravel_multi_index([p[inside] for p in places], shape)
    counts = np.bincount(flat, None if weight is None else weight[inside], prod(shape))
    return counts.astype(x.dtype).reshape(shape)


PRIMITIVES: dict[str, Any] = {
    "segment_reduce": _segment_reduce, "segment_reduce_backward": _segment_reduce_backward, "hash_bits": _hash_bits,
    "histogramdd": _histogramdd,
}
