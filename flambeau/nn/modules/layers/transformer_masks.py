"""Causal masks, activations and copies of layers that the transformer modules share."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from ...._tensor import Tensor
from ...._tensor import functions as fn
from ... import functional as F
from ..container import ModuleList
from ..module import Module

__all__ = ["_detect_is_causal_mask", "_generate_square_subsequent_mask", "_get_activation_fn", "_get_clones",
           "_get_seq_len"]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """The causal mask (sz, sz): -inf above the diagonal, 0 elsewhere."""
    return fn.triu(fn.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """The sequence length of (L, E), (N, L, E) or (L, N, E)."""
    return src.shape[1 if batch_first and src.dim() != 2 else 0]


def _get_clones(module: Module, N: int) -> ModuleList:
    """N copies of a layer, with the same parameter values."""
    return ModuleList([deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """The function named "relu" or "gelu"."""
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return fn.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether to attend causally: `is_causal`, or where it is None, whether the mask is the causal one.

    Args:
        mask: the attention mask, or None.
        is_causal: the caller's statement.
        size: the sequence length; the mask's by default.
    """
    if is_causal is not None or mask is None:
        return is_causal is True
    causal = _generate_square_subsequent_mask(mask.size(-2) if size is None else size, device=mask.device,
                                              dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())
