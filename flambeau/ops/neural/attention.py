"""Scaled dot-product attention, softmax(query keyᵀ · scale + mask) value, as one operator."""

from __future__ import annotations

from ..declare import composite, not_implemented, op


@op(name="_safe_softmax", node="SafeSoftmaxBackward0", expose=(),
    unsupported_dtypes=not_implemented("softmax_lastdim_kernel_impl", "complex"))
def _safe_softmax(xp, input, *, dim):
    """softmax along `dim`; zeros where all elements are -inf."""
    return xp.safe_softmax(input, dim)


_safe_softmax.vjp(input=lambda xp, g, out, dim: xp._softmax_backward(g, out, dim=dim))
_safe_softmax.jvp(lambda xp, t_input, out, dim: xp._softmax_backward(t_input, out, dim=dim))


@op(name="_flash_attention", node="ScaledDotProductFlashAttentionForCpuBackward0",
    nondifferentiable_inputs=("attn_mask",), expose=(), saved="dropout_p=0.0 attn_mask is_causal key query scale value")
def _flash_attention(xp, query, key, value, attn_mask=None, *, is_causal, scale, saved):
    """softmax(query keyᵀ · scale + attn_mask) value, in one node.

    Args:
        saved: a list that receives the attention weights, the softmax's result; None where there is no backward pass.
    """
    return xp.scaled_dot_product_attention(query, key, value, attn_mask, is_causal, scale, saved)


@composite(expose=())
def _attention_backward(xp, g, query, key, value, attn_mask=None, *, is_causal, scale, saved, needs):
    """The gradients of query, key and value."""
    scores = xp.matmul(query, xp.transpose(key, -2, -1)) * scale
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        scores = xp._causal_mask(scores)
    weights = xp._safe_softmax(scores, dim=-1)
    by_value = xp.matmul(xp.transpose(weights, -2, -1), g) if needs[2] else None
    by_query = by_key = None
    if needs[0] or needs[1]:
        slope = xp._softmax_backward(xp.matmul(g, xp.transpose(value, -2, -1)), weights, dim=-1) * scale
        by_query = xp.matmul(slope, key) if needs[0] else None
        by_key = xp.matmul(xp.transpose(slope, -2, -1), query) if needs[1] else None
    return by_query, by_key, by_value


_flash_attention.joint_vjp(
    lambda xp, g, query, key, value, attn_mask, is_causal, scale, saved, needs: xp._attention_backward(
        g, query, key, value, attn_mask, is_causal=is_causal, scale=scale, saved=saved, needs=needs))


def _attention_vmap(xp, batch, query, key, value, attn_mask=None, **options):
    query, key, value = (x if on else batch.expand_levels(x)
                         for x, on in zip((query, key, value), batch.on, strict=False))
    mask = None if attn_mask is None else batch.padded(3, attn_mask, 4)
    return xp._flash_attention(query, key, value, mask, **options)


_flash_attention.vmap(_attention_vmap)


@op(name="_causal_mask", node="MaskedFillBackward0", expose=(), batching_rule="trailing")
def _causal_mask(xp, input):
    """The scores (..., L, S) with -inf above the diagonal, where the key comes after the query."""
    return xp.causal_mask(input, float("-inf"))


@op(name="_causal_zero", node="MaskedFillBackward0", expose=(), batching_rule="trailing")
def _causal_zero(xp, input):
    """The input (..., L, S) with 0 above the diagonal, the vjp of `_causal_mask`."""
    return xp.causal_mask(input, 0)


for _op in (_causal_mask, _causal_zero):
    _op.vjp(input=lambda xp, g: xp._causal_zero(g))
    _op.jvp(lambda xp, t_input: xp._causal_zero(t_input))
