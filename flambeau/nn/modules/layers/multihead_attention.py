"""`MultiheadAttention`."""

from __future__ import annotations

from typing import Any

from ...._tensor import Parameter, Tensor
from ...._tensor import functions as fn
from ....backends.pytorch import mha_enabled
from ... import functional as F
from ... import init
from ...functionals.native_attention import native_multi_head_attention, why_not_inference
from ..linear import NonDynamicallyQuantizableLinear
from ..module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Multi-head attention: softmax(QKᵀ / √d + mask) V per head, between learnable linear projections.

    Args:
        embed_dim: E, size of the queries and of the output; each head has size d = E / num_heads.
        num_heads: the number of heads; divides `embed_dim`.
        dropout: dropout probability of the attention weights, in training mode.
        bias: whether the projections have biases.
        add_bias_kv: append a learnable key and value to the sequences.
        add_zero_attn: append a zero key and value to the sequences.
        kdim: size of the keys, `embed_dim` by default.
        vdim: size of the values, `embed_dim` by default.
        batch_first: batched sequences are (N, L, E) instead of (L, N, E).
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Query (L, N, E) or (L, E); key (S, N, kdim) or (S, kdim); value (S, N, vdim) or (S, vdim).
        Output (L, N, E) or (L, E); weights (N, L, S) or (L, S), averaged over the heads.

    Raises:
        ValueError: a size is not positive.
        AssertionError: `num_heads` does not divide `embed_dim`.

    >>> import flambeau as torch
    >>> attention = torch.nn.MultiheadAttention(8, 2)
    >>> x = torch.ones(5, 3, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (flambeau.Size([5, 3, 8]), flambeau.Size([3, 5, 5]))
    """

    __constants__ = ["batch_first"]

    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError("embed_dim and num_heads must be greater than 0, "
                             f"got embed_dim={embed_dim} and num_heads={num_heads} instead")
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape: int) -> Parameter:
            return Parameter(fn.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = parameter(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device,
                                                        dtype=dtype)
        if add_bias_kv:
            self.bias_k = parameter(1, 1, embed_dim)
            self.bias_v = parameter(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            assert self.out_proj.bias is not None
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # missing in old pickles
        super().__setstate__(state)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """Attend; returns the output and, if `need_weights`, the attention weights.

        Args:
            query: see the class.
            key: see the class.
            value: see the class.
            key_padding_mask: (N, S) or (S,), bool (True: ignore the key) or float (added to the scores).
            need_weights: return the weights; False allows the fused `scaled_dot_product_attention`.
            attn_mask: (L, S) or (N·num_heads, L, S), bool (True: no attention) or float (added to the scores).
            average_attn_weights: average the weights over the heads; else they are (N, num_heads, L, S).
            is_causal: hint that `attn_mask` is the causal mask.
        """
        why = self._why_not_inference(query, key, value, attn_mask, key_padding_mask)
        key_padding_mask = F._canonical_mask(key_padding_mask, "key_padding_mask", F._none_or_dtype(attn_mask),
                                             "attn_mask", query.dtype)
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if not why:
            mask, mask_type = self.merge_masks(attn_mask, key_padding_mask, query)
            return native_multi_head_attention(
                query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
                self.out_proj.weight, self.out_proj.bias, mask, need_weights,  # type: ignore[arg-type]
                average_attn_weights, mask_type)
        if query.is_nested or key.is_nested or value.is_nested:
            raise AssertionError("MultiheadAttention does not support NestedTensor outside of its fast path. "
                                 f"The fast path was not hit because {why}")
        swap = self.batch_first and query.dim() == 3
        if swap:
            # transpose each object once: self-attention is detected by identity
            swapped = {number: x.transpose(1, 0) for number, x in {id(x): x for x in (query, key, value)}.items()}
            query, key, value = swapped[id(query)], swapped[id(key)], swapped[id(value)]
        separate: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            separate = {"use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight,
                        "k_proj_weight": self.k_proj_weight, "v_proj_weight": self.v_proj_weight}
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight,
            self.out_proj.bias, training=self.training, key_padding_mask=key_padding_mask,
            need_weights=need_weights, attn_mask=attn_mask, average_attn_weights=average_attn_weights,
            is_causal=is_causal, **separate)
        return (output.transpose(1, 0) if swap else output), weights

    def _why_not_inference(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None,
                           key_padding_mask: Tensor | None) -> str:
        """Why attention is not computed as PyTorch's fused operator does: "" if it is."""
        if not mha_enabled():
            return "torch.backends.mha.get_fastpath_enabled() was not True"
        if query.dim() != 3:
            return f"input not batched; expected query.dim() of 3 but got {query.dim()}"
        if query is not key or key is not value:
            return "non-self attention was used (query, key, and value are not the same Tensor)"
        for name in ("in_proj_bias", "in_proj_weight"):
            parameter = getattr(self, name)
            if parameter is None:
                if name == "in_proj_bias":
                    continue
                return "in_proj_weight was None"
            if query.dtype != parameter.dtype:
                return f"dtypes of query ({query.dtype}) and self.{name} ({parameter.dtype}) don't match"
        if self.training:
            return "training is enabled"
        if self.num_heads % 2:
            return "self.num_heads is not even"
        if not self.batch_first:
            return "batch_first was not True"
        if self.bias_k is not None:
            return "self.bias_k was not None"
        if self.bias_v is not None:
            return "self.bias_v was not None"
        if self.add_zero_attn:
            return "add_zero_attn was enabled"
        if not self._qkv_same_embed_dim:
            return "_qkv_same_embed_dim was not True"
        if query.is_nested and (attn_mask is not None or key_padding_mask is not None):
            return ("supplying both src_key_padding_mask and src_mask at the same time "
                    "                                 is not supported with NestedTensor input")
        if any(mask is not None and mask.is_floating_point() for mask in (attn_mask, key_padding_mask)):
            return "floating-point masks are not supported for fast path."
        if self.in_proj_bias is None:
            return "self.in_proj_bias was None"
        return why_not_inference((query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight,
                                  self.out_proj.bias))

    def merge_masks(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                    query: Tensor) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and its type: 1 for a padding mask (N, L), 2 for a mask (N, num_heads, L, L).

        Args:
            attn_mask: (L, L) or (N · num_heads, L, L), float, or None.
            key_padding_mask: (N, L), float, or None.
            query: (N, L, E).

        >>> import flambeau as torch
        >>> x, padding = torch.zeros(3, 5, 8), torch.zeros(3, 5)
        >>> mask, mask_type = torch.nn.MultiheadAttention(8, 2).merge_masks(torch.zeros(5, 5), padding, x)
        >>> mask.shape, mask_type
        (flambeau.Size([3, 2, 5, 5]), 2)
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2
