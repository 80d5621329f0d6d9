"""Attention of long texts by blocks of queries: the weights of a block stay near, and are not kept.

Causal attention reads no keys behind a block's last query, in steps, so that there are few sizes to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...backends.compiled import attention_of_rows, attention_of_rows_launch
from ...backends.compiled.thresholds import MIN_ELEMENTS

#: attention weights, in elements, above which blocks are faster, without and with a causal mask; those of a block
MIN_WEIGHTS, MIN_CAUSAL, BLOCK_WEIGHTS = 1 << 24, 1 << 22, 1 << 22
#: the fewest queries of a block: products of fewer rows are slow
MIN_ROWS = 64
#: how many numbers of keys causal blocks may have
STEPS = 16


def by_blocks(attention: Callable[..., Any]) -> Callable[..., Any]:
    """The primitive of attention: single queries take a kernel, long texts blocks, unless weights are to be saved."""
    def run(query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: float, saved: Any) -> Any:
        if saved is None and _is_row(query, mask, is_causal):
            found = attention_of_rows(query, key, value, scale)
            if found is not None:
                return found
        if saved is None and (mask is None or not is_causal) and _is_long(query, key, is_causal):
            return attention_in_blocks(attention, query, key, value, mask, is_causal, scale)
        return attention(query, key, value, mask, is_causal, scale, saved)

    def launch(args: Sequence[Any], params: dict[str, Any], filling: bool = False) -> Callable[..., Any] | None:
        query, key, value, mask, is_causal, scale, saved = args
        if saved is None and not params and not filling and _is_row(query, mask, is_causal):
            of_rows: Callable[..., Any] | None = attention_of_rows_launch(query, key, value, scale)
            if of_rows is not None:
                return of_rows
        made: Callable[..., Any] | None = attention.launch(args, params, filling)  # type: ignore[attr-defined]
        return made

    run.launch = launch  # type: ignore[attr-defined]
    return run


def _is_row(query: Any, mask: Any, is_causal: bool) -> bool:
    """Whether there is one query in each head, which attends to all keys."""
    return mask is None and not is_causal and query.ndim == 4 and query.shape[2] == 1


def _is_long(query: np.ndarray, key: np.ndarray, is_causal: bool) -> bool:
    """Whether blocks are faster for queries (..., L, E) and keys (..., S, E)."""
    weights = prod(query.shape[:-1]) * key.shape[-2]
    least = max(MIN_CAUSAL if is_causal else MIN_WEIGHTS, MIN_ELEMENTS[0])  # the latter is huge while kernels pause
    return query.ndim > 2 and query.shape[-2] > 2 * MIN_ROWS and weights > least


def _causal_mask(first: int, last: int, keys: int, dtype: np.dtype) -> np.ndarray:
    """0 for the keys up to each query's position, -inf behind it."""
    return np.where(np.arange(keys) <= np.arange(first, last)[:, None], dtype.type(0), dtype.type(-np.inf))


def attention_in_blocks(attention: Callable[..., Any], query: np.ndarray, key: np.ndarray, value: np.ndarray,
                        mask: np.ndarray | None, is_causal: bool, scale: float) -> np.ndarray:
    """softmax(query keyᵀ · scale + mask) value.

    Args:
        attention: the primitive for a block, `attention(query, key, value, mask, is_causal, scale, None)`.
    """
    count, keys = query.shape[-2], key.shape[-2]
    heads = prod(query.shape[:-2])
    rows = max(MIN_ROWS, BLOCK_WEIGHTS // (heads * keys) // MIN_ROWS * MIN_ROWS)
    step = -(-max(rows, -(-keys // STEPS)) // MIN_ROWS) * MIN_ROWS
    out = np.empty((*query.shape[:-1], value.shape[-1]), query.dtype) if query.shape[-1] != value.shape[-1] else (
        np.empty_like(query))
    for first in range(0, count, rows):
        last = min(first + rows, count)
        k, v, added = key, value, mask
        if is_causal:
            near = min(keys, -(-last // step) * step)
            k, v, added = key[..., :near, :], value[..., :near, :], _causal_mask(first, last, near, query.dtype)
        elif mask is not None and mask.ndim > 1 and mask.shape[-2] > 1:
            added = mask[..., first:last, :]
        out[..., first:last, :] = attention(query[..., first:last, :], k, v, added, False, scale, None)
    return out


__all__ = ["attention_in_blocks", "by_blocks"]
