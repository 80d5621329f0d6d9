"""Causal biases for `scaled_dot_product_attention`, aligned to the upper left or the lower right corner."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.tensor import wrap
from ...dtypes import bool_

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner to which the diagonal of a causal bias is aligned.

    >>> from flambeau.nn.attention.bias import CausalVariant
    >>> CausalVariant.UPPER_LEFT
    <CausalVariant.UPPER_LEFT: 1>
    """

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A causal mask that is made only where it is needed.

    Args:
        variant: the corner to which the diagonal is aligned.
        seq_len_q: number of queries.
        seq_len_kv: number of keys.

    Raises:
        AssertionError: `variant` is no `CausalVariant`.

    >>> from flambeau.nn.attention.bias import CausalBias, CausalVariant
    >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        result: CausalBias = wrap(np.zeros((int(variant), seq_len_q, seq_len_kv), np.float32), cls)
        return result

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                          stacklevel=2)

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask (seq_len_q, seq_len_kv), True where a query attends to a key."""
        offset = 0 if self.variant == CausalVariant.UPPER_LEFT else self.seq_len_kv - self.seq_len_q
        return fn.tril(fn.ones((self.seq_len_q, self.seq_len_kv), dtype=bool_, device=device), diagonal=offset)

    @staticmethod
    def _dispatch(query: Tensor, key: Tensor, value: Tensor, attn_mask: CausalBias, dropout_p: float = 0.0,
                  is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        is_upper = attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant == CausalVariant.UPPER_LEFT
        mask = None if is_upper else attn_mask._materialize(query.device)
        return fn.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_upper, scale=scale,
                                               enable_gqa=enable_gqa)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The causal bias whose diagonal starts at the first query and the first key: PyTorch's `is_causal=True`.

    Args:
        size: numbers of queries and of keys.

    Raises:
        AssertionError: there are not two sizes.

    >>> from flambeau.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The causal bias whose diagonal ends at the last query and the last key.

    Args:
        size: numbers of queries and of keys.

    Raises:
        AssertionError: there are not two sizes.

    >>> from flambeau.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
