"""Attention: softmax of scaled products of queries and keys, times values."""

from __future__ import annotations

from ..declare import composite, not_implemented, op


@op(name="_safe_softmax", node="SafeSoftmaxBackward0", expose=(),
    unsupported_dtypes=not_implemented("softmax_lastdim_kernel_impl", "complex"))
def _safe_softmax(xp, input, *, dim):
    """softmax, and zeros where everything is -inf."""
    return xp.safe_softmax(input, dim)


_safe_softmax.vjp(input=lambda xp, g, out, dim: xp._softmax_slope(g, out, dim=dim))
_safe_softmax.jvp(lambda xp, t_input, out, dim: xp._softmax_slope(t_input, out, dim=dim))


@op(name="_flash_attention", node="ScaledDotProductFlashAttentionForCpuBackward0",
    nondifferentiable_inputs=("attn_mask",), expose=())
def _flash_attention(xp, query, key, value, attn_mask=None, *, is_causal, scale, kept):
    """softmax(query keyᵀ · scale + attn_mask) value, in one node.

    Args:
        kept: gets the weights, softmax's result.
    """
    return xp.attend(query, key, value, attn_mask, is_causal, scale, kept)


@composite(expose=())
def _attention_backward(xp, g, query, key, value, attn_mask=None, *, is_causal, scale, kept, needs):
    """The cotangents of query, key and value."""
    scores = xp.matmul(query, xp.transpose(key, -2, -1)) * scale
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        scores = xp._mask_later(scores)
    weights = xp._safe_softmax(scores, dim=-1)
    by_value = xp.matmul(xp.transpose(weights, -2, -1), g) if needs[2] else None
    by_query = by_key = None
    if needs[0] or needs[1]:
        slope = xp._softmax_slope(xp.matmul(g, xp.transpose(value, -2, -1)), weights, dim=-1) * scale
        by_query = xp.matmul(slope, key) if needs[0] else None
        by_key = xp.matmul(xp.transpose(slope, -2, -1), query) if needs[1] else None
    return by_query, by_key, by_value


_flash_attention.joint_vjp(
    lambda xp, g, query, key, value, attn_mask, is_causal, scale, kept, needs: xp._attention_backward(
        g, query, key, value, attn_mask, is_causal=is_causal, scale=scale, kept=kept, needs=needs))


def _attention_of_batches(xp, batch, query, key, value, attn_mask=None, **how):
    query, key, value = (x if on else batch.full(x) for x, on in zip((query, key, value), batch.on, strict=False))
    return xp._flash_attention(query, key, value, None if attn_mask is None else batch.padded(3, attn_mask, 4), **how)


_flash_attention.vmap(_attention_of_batches)


@op(name="_mask_later", node="MaskedFillBackward0", expose=(), batching_rule="trailing")
def _mask_later(xp, input):
    """-inf where the key comes after the query."""
    return xp.mask_later(input, float("-inf"))


@op(name="_zero_later", node="MaskedFillBackward0", expose=(), batching_rule="trailing")
def _zero_later(xp, input):
    """0 where the key comes after the query."""
    return xp.mask_later(input, 0)


for _op in (_mask_later, _zero_later):
    _op.vjp(input=lambda xp, g: xp._zero_later(g))
    _op.jvp(lambda xp, t_input: xp._zero_later(t_input))
