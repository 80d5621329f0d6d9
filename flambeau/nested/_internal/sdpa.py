"""Attention of nested queries, keys and values: each component attends to itself."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from .nested_tensor import NestedTensor
from .structure_ops import is_nested, of_rows, padded, unpadded


def jagged_scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None,
                                        dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                        enable_gqa: bool = False) -> NestedTensor:
    """softmax(query keyᵀ scale) value for each component.

    Args:
        query, key, value: (B, H, ragged, E), transposed from (B, ragged, H, E).

    Raises:
        ValueError: not all are nested and four-dimensional, or there is a mask.
        RuntimeError: no kernel computes the attention: it is causal, or the tensors are not transposed.
    """
    if not all(map(is_nested, (query, key, value))):
        shown = ", ".join(f"{name}.is_nested: {x.is_nested}" for name, x in (("query", query), ("key", key)))
        raise ValueError(f"Expected query, key, and value to be nested tensors, but got {shown}, and value.is_nested: "
                         f"{value.is_nested} instead.")
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    every = (query, key, value)
    if is_causal or any(x._structure.ragged_idx != 2 or not x._values.transpose(0, 1).is_contiguous() for x in every):
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")
    q, k, v = (padded(x, 0.0).transpose(1, 2) for x in every)  # (B, H, longest, E)
    out = fn.scaled_dot_product_attention(q, k, v, _key_mask(key, k), dropout_p, False, scale=scale,
                                          enable_gqa=enable_gqa)
    structure = query._structure
    return of_rows(unpadded(out.transpose(1, 2), structure), structure, "TransposeBackward0")


def _key_mask(key: NestedTensor, dense: Tensor) -> Tensor:
    """Which keys are there: (B, 1, 1, longest)."""
    sizes = fn.tensor(key._structure.sizes)[:, None]
    return (fn.arange(dense.shape[2]) < sizes)[:, None, None, :]
