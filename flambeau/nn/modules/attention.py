"""`MultiheadAttention`."""

from __future__ import annotations

from typing import Any

from ..._tensor import Parameter, Tensor
from ..._tensor import functions as fn
from .. import functional as F
from .. import init
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

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
        swap = self.batch_first and query.dim() == 3
        if swap:
            # transpose each object once: self-attention is detected by identity
            swapped = {id(x): x.transpose(1, 0) for x in (query, key, value)}
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
