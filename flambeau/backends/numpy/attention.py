"""Scaled dot-product attention and its gradient on arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_fmin = np.fmin.reduce
#: masks of up to so many elements are kept
_FEW = 1024


@functools.lru_cache(64)
def _few_later(n: int, m: int) -> Any:
    return ~np.tri(n, m, dtype=bool)


def _later(n: int, m: int) -> Any:
    """Whether a key comes after a query."""
    return _few_later(n, m) if n * m <= _FEW else ~np.tri(n, m, dtype=bool)


def _safe_softmax(x: Any, dim: int) -> Any:
    """softmax along `dim`; zeros where all elements are -inf."""
    if not x.size:
        return x.copy()
    axis = dim % x.ndim if x.ndim else None
    top = np.maximum.reduce(x, axis=axis, keepdims=True)
    any_masked = _fmin(top, None) == -np.inf
    if any_masked:
        all_masked = np.isneginf(top)
        top = np.where(all_masked, x.dtype.type(0), top)
    exponentials = np.subtract(x, top)
    np.exp(exponentials, out=exponentials)
    total = np.add.reduce(exponentials, axis=axis, keepdims=True)
    if any_masked:
        total = np.where(all_masked, x.dtype.type(1), total)
    return np.divide(exponentials, total, out=exponentials)


def _causal_mask(x: Any, value: Any) -> Any:
    n, m = x.shape[-2:]
    return np.where(np.tri(n, m, dtype=bool), x, x.dtype.type(value))


def _attention(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float,
               saved: list[Any] | None) -> Any:
    scores = np.matmul(query, key.swapaxes(-2, -1))
    np.multiply(scores, scores.dtype.type(scale), out=scores)
    if attn_mask is not None:
        np.add(scores, attn_mask, out=scores)
    if is_causal:
        n, m = scores.shape[-2:]
        np.copyto(scores, scores.dtype.type(-np.inf), where=_later(n, m))
    weights = _safe_softmax(scores, -1)
    if saved is not None:
        saved[:] = (weights,)
    if query.shape == (*weights.shape[:-1], value.shape[-1]):
        return np.matmul(weights, value, out=np.empty_like(query))  # in the query's memory layout
    return np.matmul(weights, value)


def _attention_backward(g: Any, query: Any, key: Any, value: Any, attn_mask: Any = None, *, is_causal: bool,
                        scale: float, saved: list[Any], needs: Any) -> Any:
    weights, = saved
    by_value = np.matmul(weights.swapaxes(-2, -1), g) if needs[2] else None
    by_query = by_key = None
    if needs[0] or needs[1]:
        slope = np.matmul(g, value.swapaxes(-2, -1))
        np.multiply(slope, weights, out=slope)
        slope -= weights * np.add.reduce(slope, -1, keepdims=True)
        np.multiply(slope, slope.dtype.type(scale), out=slope)
        by_query = np.matmul(slope, key) if needs[0] else None
        by_key = np.matmul(slope.swapaxes(-2, -1), query) if needs[1] else None
    return by_query, by_key, by_value


PRIMITIVES = {"safe_softmax": _safe_softmax, "causal_mask": _causal_mask, "scaled_dot_product_attention": _attention,
              "_attention_backward": _attention_backward}
