"""`multi_head_attention_forward`: multi-head attention with explicit projection weights."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn

__all__ = ["_canonical_mask", "_in_projection", "_in_projection_packed", "_mha_shape_check", "_none_or_dtype",
           "multi_head_attention_forward"]


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None) -> tuple[Tensor, ...]:
    """Project q, k and v by weights stacked in one (3E, E) matrix."""
    size = q.size(-1)
    if k is v:
        if q is k:
            # self-attention: one GEMM for all three
            projected = fn.linear(q, w, b)
            stacked = projected.unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return stacked[0], stacked[1], stacked[2]
        w_q, w_kv = w.split([size, 2 * size])
        b_q, b_kv = (None, None) if b is None else b.split([size, 2 * size])
        q_projected = fn.linear(q, w_q, b_q)
        projected = fn.linear(k, w_kv, b_kv)
        stacked = projected.unflatten(-1, (2, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        return q_projected, stacked[0], stacked[1]
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    return fn.linear(q, w_q, b_q), fn.linear(k, w_k, b_k), fn.linear(v, w_v, b_v)


def _in_projection(q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, b_q: Tensor | None = None,
                   b_k: Tensor | None = None, b_v: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Project q, k and v by separate weights, which map to the size of q."""
    size = q.size(-1)
    for name, weight, expected in (("query", w_q, (size, size)), ("key", w_k, (size, k.size(-1))),
                                   ("value", w_v, (size, v.size(-1)))):
        if tuple(weight.shape) != expected:
            raise AssertionError(f"expecting {name} weights shape of {expected}, but got {weight.shape}")
    for name, bias in (("query", b_q), ("key", b_k), ("value", b_v)):
        if bias is not None and tuple(bias.shape) != (size,):
            raise AssertionError(f"expecting {name} bias shape of {(size,)}, but got {bias.shape}")
    return fn.linear(q, w_q, b_q), fn.linear(k, w_k, b_k), fn.linear(v, w_v, b_v)


def _mha_shape_check(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None,
                 attn_mask: Tensor | None, num_heads: int) -> bool:
    """Check the ranks; return whether the inputs are batched.

    Raises:
        AssertionError: the ranks do not match.
    """
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received "
                             f"{rank}-D query tensor")
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {rank}-D"
                             f" but found {key.dim()}-D and {value.dim()}-D tensors respectively")
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D"
                             f" but found {key_padding_mask.dim()}-D tensor instead")
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
                                 f" but found {attn_mask.dim()}-D tensor instead")
        if rank == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return rank == 3


def _canonical_mask(mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any,
                    check_other: bool = True) -> Tensor | None:
    """`mask` as an additive float mask: -inf where a bool mask is True."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != (mask != mask).dtype and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} "
                      "is deprecated. Use same type for both instead.", stacklevel=3)
    if is_float:
        return mask
    return fn.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a tensor, None for None."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def multi_head_attention_forward(
        query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
        in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
        bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
        out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
        q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
        v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
        average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention: softmax(QKᵀ / √d + mask) V per head, between linear projections.

    Args:
        query: (L, N, E) or (L, E).
        key: (S, N, E) or (S, E); with separate weights its size may differ from E.
        value: (S, N, E) or (S, E); with separate weights its size may differ from E.
        embed_dim_to_check: the expected E.
        num_heads: the number of heads; each has size d = E / num_heads.
        in_proj_weight: (3E, E), the weights of q, k and v, stacked.
        in_proj_bias: (3E,), or None.
        bias_k: (1, 1, E), a key appended to the sequence, or None.
        bias_v: (1, 1, E), a value appended to the sequence, or None.
        add_zero_attn: append a zero key and value.
        dropout_p: dropout probability of the attention weights.
        out_proj_weight: (E, E).
        out_proj_bias: (E,), or None.
        training: apply dropout.
        key_padding_mask: (N, S) or (S,), bool (True: ignore the key) or float (added to the scores).
        need_weights: return the attention weights.
        attn_mask: (L, S) or (N · num_heads, L, S), bool (True: no attention) or float (added to the scores).
        use_separate_proj_weight: use the next three instead of `in_proj_weight`.
        q_proj_weight: (E, E).
        k_proj_weight: (E, size of the keys).
        v_proj_weight: (E, size of the values).
        static_k: (N · num_heads, S, d), replaces the projected keys.
        static_v: (N · num_heads, S, d), replaces the projected values.
        average_attn_weights: average the weights over the heads.
        is_causal: hint that `attn_mask` is the causal mask.

    Returns:
        The output, (L, N, E) or (L, E), and the weights, (N, L, S) or (L, S), without averaging (N, num_heads, L, S) or
        (num_heads, L, S), or None.

    Raises:
        AssertionError: ranks or sizes do not match.
        RuntimeError: the shape of `attn_mask` is wrong.

    >>> import flambeau as torch
    >>> x, eye = torch.ones(2, 1, 4), torch.eye(4)
    >>> output, weights = torch.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, torch.cat([eye, eye, eye]), None, None, None, False, 0.0, eye, None)
    >>> output.shape, weights.shape
    (flambeau.Size([2, 1, 4]), flambeau.Size([1, 2, 2]))
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, batch, embed_dim = query.shape
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask",
                                       None if attn_mask is None else attn_mask.dtype, "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
                           "method `generate_square_subsequent_mask` to create this mask.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # scaled_dot_product_attention(is_causal=True) needs no mask
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if key_padding_mask is not None:
            is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                                 f"{value.shape[:2]}")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        weights: tuple[Any, ...] = (q_proj_weight, k_proj_weight, v_proj_weight)
        for name, weight in zip("qkv", weights, strict=True):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        q, k, v = _in_projection(query, key, value, *weights, *biases)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _check_attn_mask(attn_mask, tgt_len, key.shape[0], batch * num_heads)
    if (bias_k is None) != (bias_v is None):
        given, missing = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{given} is set but {missing} is None")
    if bias_k is not None and bias_v is not None:
        for name, static in (("key", static_k), ("value", static_v)):
            if static is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        k = fn.cat([k, bias_k.repeat(1, batch, 1)])
        v = fn.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _pad_mask(attn_mask), _pad_mask(key_padding_mask)

    q = q.view(tgt_len, batch * num_heads, head_dim).transpose(0, 1)  # (N·heads, L, d)
    k = _split_heads(k, static_k, "static_k", batch * num_heads, head_dim)
    v = _split_heads(v, static_v, "static_v", batch * num_heads, head_dim)
    if add_zero_attn:
        zeros = fn.zeros((batch * num_heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = fn.cat([k, zeros], dim=1), fn.cat([v, zeros], dim=1)
        attn_mask, key_padding_mask = _pad_mask(attn_mask), _pad_mask(key_padding_mask)
    src_len = k.size(1)
    if key_padding_mask is not None:
        for dim, size in ((0, batch), (1, src_len)):
            if key_padding_mask.shape[dim] != size:
                raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {size}, but got "
                                     f"{key_padding_mask.shape[dim]}")
        padding = key_padding_mask.view(batch, 1, 1, src_len).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(batch * num_heads, 1, src_len)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0

    if not need_weights:
        return _attention_output(q, k, v, attn_mask, batch, num_heads, dropout_p, is_causal,
                                out_proj_weight, out_proj_bias, batched), None
    scaled = q * math.sqrt(1.0 / float(head_dim))
    if attn_mask is not None:
        scores = fn.baddbmm(attn_mask, scaled, k.transpose(-2, -1))
    else:
        scores = fn.bmm(scaled, k.transpose(-2, -1))
    attention = scores.softmax(-1)
    if dropout_p > 0.0:
        attention = fn.dropout(attention, dropout_p, True)
    heads = fn.bmm(attention, v).transpose(0, 1).reshape(tgt_len * batch, embed_dim)
    output = fn.linear(heads, out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, batch, output.size(1))
    attention = attention.view(batch, num_heads, tgt_len, src_len)
    if average_attn_weights:
        attention = attention.mean(dim=1)
    if not batched:
        return output.squeeze(1), attention.squeeze(0)
    return output, attention


def _attention_output(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, batch: int, num_heads: int,
                     dropout_p: float, is_causal: bool, weight: Tensor, bias: Tensor | None,
                     batched: bool) -> Tensor:
    """The output without weights, by `scaled_dot_product_attention`."""
    tgt_len, head_dim = q.size(1), q.size(2)
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, num_heads, -1, k.size(1))
    q, k, v = (x.view(batch, num_heads, x.size(1), head_dim) for x in (q, k, v))
    heads = fn.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    joined = heads.permute(2, 0, 1, 3).reshape(batch * tgt_len, num_heads * head_dim)
    output = fn.linear(joined, weight, bias)
    output = output.view(tgt_len, batch, output.size(1))
    return output if batched else output.squeeze(1)


def _check_attn_mask(mask: Tensor, tgt_len: int, src_len: int, heads: int) -> Tensor:
    if mask.dim() == 2:
        if tuple(mask.shape) != (tgt_len, src_len):
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be "
                               f"{(tgt_len, src_len)}.")
        return mask.unsqueeze(0)
    if mask.dim() == 3:
        if tuple(mask.shape) != (heads, tgt_len, src_len):
            raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be "
                               f"{(heads, tgt_len, src_len)}.")
        return mask
    raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")


def _pad_mask(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else fn.constant_pad_nd(mask, (0, 1), 0)


def _split_heads(projected: Tensor, static: Tensor | None, name: str, heads: int, head_dim: int) -> Tensor:
    """Reshape (S, N, E) to (N·heads, S, d); `static`, if given, replaces it."""
    if static is None:
        return projected.view(projected.shape[0], heads, head_dim).transpose(0, 1)
    if static.size(0) != heads:
        raise AssertionError(f"expecting {name}.size(0) of {heads}, but got {static.size(0)}")
    if static.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}")
    return static
