"""Attention and the encoder layer in inference: what PyTorch runs as one operator each, where nothing requires grad."""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.dispatch.out_tensors import write_out
from ..._tensor.overriding.entry_points import asks_handlers
from ...amp.state import is_autocast_enabled
from ...backends.pytorch import mha_enabled
from ...dtypes import bool_
from ...engine.grad_mode import is_grad_enabled
from ...modes import active_tracer
from ...ops.declare import REGISTRY
from ...warning_location import user_stacklevel

__all__ = ["native_encoder_layer", "native_multi_head_attention", "warn_of_nested_tensors",
           "why_not_inference", "why_not_packed"]

_warned_of_nested_tensors = [False]


def why_not_inference(tensors: tuple[Tensor | None, ...]) -> str:
    """Why the inference path may not be taken with these tensors: "" if it may."""
    if not mha_enabled():
        return "torch.backends.mha.get_fastpath_enabled() was not True"
    if asks_handlers(*(x for x in tensors if x is not None and not x.is_nested)):  # nested tensors are a subclass here
        return "some Tensor argument has_torch_function"
    if is_autocast_enabled():
        return "autocast is enabled"
    if is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
        return ("grad is enabled and at least one of query or the input/output projection weights or biases "
                "requires_grad")
    return ""


def _check(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor,
           qkv_bias: Tensor) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {x.dim()}-D tensor")
        if name == "query" and x.shape[2] != embed_dim:
            raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {x.shape[2]}")
    if not query.shape == key.shape == value.shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if qkv_weight.dim() != 2:
        raise RuntimeError(f"expected 2-D `qkv_weight`, got {qkv_weight.dim()}-D tensor")
    if qkv_weight.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if qkv_weight.shape[1] != embed_dim:
        raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if qkv_bias.dim() != 1:
        raise RuntimeError(f"expected 1-D `qkv_bias`, got {qkv_bias.dim()}-D tensor")
    if qkv_bias.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


def _broadcast_mask(mask: Tensor, mask_type: int | None, scores: Tensor) -> Tensor:
    """`mask` as a bool tensor that broadcasts with the scores (N, heads, L, L)."""
    batch, _, length, _ = scores.shape
    if mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    if mask.dim() == 2 and mask_type == 0:
        if tuple(mask.shape) != (length, length):
            raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
    elif mask.dim() == 2 and mask_type == 1:
        if tuple(mask.shape) != (batch, length):
            raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
        mask = mask.view(batch, 1, 1, length)
    elif mask.shape != scores.shape:
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    return mask.to(bool_)


def native_multi_head_attention(
        query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor,
        qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None = None,
        need_weights: bool = True, average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention in inference: softmax(QKᵀ / √d) V per head, between linear projections.

    Args:
        query: (N, L, E), like `key` and `value`.
        key: keys.
        value: values.
        embed_dim: E.
        num_head: the number of heads; each has size d = E / num_head.
        qkv_weight: (3E, E).
        qkv_bias: (3E,).
        proj_weight: (E, E).
        proj_bias: (E,).
        mask: elements other than 0 (False) exclude a position; the shape follows from `mask_type`.
        need_weights: return the weights.
        average_attn_weights: average the weights over the heads.
        mask_type: 0 for (L, L), 1 for (N, L), 2 for (N, num_head, L, L).

    Returns:
        The output (N, L, E) and the weights (N, L, L), without averaging (N, num_head, L, L), or None.

    Raises:
        RuntimeError: a shape does not match.
    """
    if query.is_nested:
        return _nested_attention(query, num_head, (qkv_weight, qkv_bias, proj_weight, proj_bias), need_weights,
                                 average_attn_weights)
    _check(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    batch, length, _ = query.shape
    head_dim = embed_dim // num_head
    if query is key and key is value:
        projected = fn.linear(query, qkv_weight, qkv_bias).split(embed_dim, -1)
    else:
        projected = tuple(fn.linear(x, w, b) for x, w, b in zip(
            (query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True))
    q, k, v = (x.reshape(batch, length, num_head, head_dim).transpose(1, 2) for x in projected)
    scores = fn.matmul(q / head_dim**0.5, k.transpose(-2, -1))
    if mask is not None:
        scores = scores.masked_fill(_broadcast_mask(mask, mask_type, scores), float("-inf"))
    weights = fn.softmax(scores, -1)
    heads = fn.matmul(weights, v).transpose(1, 2).reshape(batch, length, embed_dim)
    output = fn.linear(heads, proj_weight, proj_bias)
    if not need_weights:
        return output, None
    return output, weights.sum(1) / num_head if average_attn_weights else weights


def _nested_attention(x: Tensor, num_head: int, projections: tuple[Tensor, Tensor, Tensor, Tensor], need_weights: bool,
                      average_attn_weights: bool) -> tuple[Tensor, Tensor | None]:
    """`native_multi_head_attention` of a nested tensor with itself; the weights are padded with zeros."""
    qkv_weight, qkv_bias, proj_weight, proj_bias = projections
    sizes = fn.tensor([len(part) for part in x.unbind()])
    embed_dim = x.size(-1)
    q, k, v = [each.contiguous().view(len(sizes), -1, num_head, embed_dim // num_head).transpose(1, 2)
               for each in fn.linear(x, qkv_weight, qkv_bias).chunk(3, -1)]
    heads = fn.scaled_dot_product_attention(q, k, v).transpose(1, 2).contiguous().view(len(sizes), -1, embed_dim)
    output = fn.linear(heads, proj_weight, proj_bias)
    if not need_weights:
        return output, None
    q, k = q.contiguous().to_padded_tensor(0.0), k.contiguous().to_padded_tensor(0.0)
    absent = fn.arange(q.shape[2]) >= sizes[:, None]
    scores = fn.matmul(q / q.shape[-1]**0.5, k.mT).masked_fill(absent[:, None, None], float("-inf"))
    weights = fn.softmax(scores, -1).masked_fill(absent[:, None, :, None], 0.0)
    return output, weights.sum(1) / num_head if average_attn_weights else weights


def _residual(x: Tensor, skipped: Tensor) -> Tensor:
    """The sum in the dtype of `x`, which is autocast's where autocast is on: PyTorch adds in place."""
    return x + skipped if x.dtype is skipped.dtype else x.add_(skipped)


def native_encoder_layer(
        src: Tensor, embed_dim: int, num_heads: int, projections: tuple[Tensor, Tensor, Tensor, Tensor], use_gelu: bool,
        norm_first: bool, eps: float, rest: tuple[Tensor, ...], mask: Tensor | None = None,
        mask_type: int | None = None) -> Tensor:
    """A transformer encoder layer in inference: attention and a feed-forward network, each with a residual.

    Args:
        src: (N, L, E).
        embed_dim: E.
        num_heads: the number of heads.
        projections: weight (3E, E) and bias of queries, keys and values, then (E, E) and bias of the output.
        use_gelu: GELU instead of ReLU.
        norm_first: normalize before attention and feed-forward network instead of after the residuals.
        eps: of both layer norms.
        rest: weight and bias of the norms, (E,) each, and of the linear layers, (F, E) and (E, F).
        mask: see `native_multi_head_attention`.
        mask_type: see `native_multi_head_attention`.

    Returns:
        (N, L, E).
    """
    norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, weight_1, bias_1, weight_2, bias_2 = rest

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return fn.layer_norm(x, (embed_dim,), weight, bias, eps)

    x = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    x = _residual(native_multi_head_attention(x, x, x, embed_dim, num_heads, *projections, mask, False, True,
                                              mask_type)[0], src)
    if not norm_first:
        x = norm(x, norm_weight_1, norm_bias_1)
    y = norm(x, norm_weight_2, norm_bias_2) if norm_first else x
    y = fn.linear(y, weight_1, bias_1)
    y = _residual(fn.linear(fn.gelu(y) if use_gelu else fn.relu(y), weight_2, bias_2), x)
    return y if norm_first else norm(y, norm_weight_2, norm_bias_2)


def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, *arguments: Any) -> Tensor:
    """`native_encoder_layer` with PyTorch's arguments: weights and biases one by one."""
    projections, (use_gelu, norm_first, eps), rest, masks = (arguments[:4], arguments[4:7], arguments[7:15],
                                                             arguments[15:])
    return native_encoder_layer(src, embed_dim, num_heads, projections, use_gelu, norm_first, eps, rest, *masks)


_native_multi_head_attention = native_multi_head_attention
_native_multi_head_attention.__name__ = "_native_multi_head_attention"  # which handlers see


# ----- parts of the operators, under PyTorch's private names ------------------------------


def _addmm_activation(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1,
                      use_gelu: bool = False, out: Tensor | None = None) -> Tensor:
    """`addmm`, then ReLU or GELU.

    >>> import flambeau as torch
    >>> torch._addmm_activation(torch.tensor([-3., 0.]), torch.ones(1, 2), torch.ones(2, 2))
    tensor([[0., 2.]])
    """
    product = fn.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    result = fn.gelu(product) if use_gelu else product.relu()
    return result if out is None else write_out(REGISTRY["addmm"], result, out)


def _add_relu(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """`add`, then ReLU.

    >>> import flambeau as torch
    >>> torch._add_relu(torch.tensor([-3., 1.]), torch.ones(2), alpha=2)
    tensor([0., 3.])
    """
    if out is None:
        return fn.add(input, other, alpha=alpha).relu()
    return fn.add(input, other, alpha=alpha, out=out).relu_()


def _add_relu_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`_add_relu`, in place."""
    return input.add_(other, alpha=alpha).relu_()


def _masked_softmax(input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """Softmax along `dim`, the last by default, where `mask` is False; other elements are 0, or NaN where all are.

    Args:
        mask: of bools, of the input's shape, or as its type says.
        mask_type: 0 for (L, L), 1 for (N, L), 2 for the shape of the input, (N, num_head, L, L).

    >>> import flambeau as torch
    >>> torch._masked_softmax(torch.zeros(3), torch.tensor([True, False, False]))
    tensor([0.0000, 0.5000, 0.5000])
    """
    if mask.dtype is not bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.shape != input.shape:
        mask = _broadcast_mask(mask, mask_type, input)
    return fn.softmax(input.masked_fill(mask, float("-inf")), -1 if dim is None else dim)


def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries over √d, keys and values, each (N, num_heads, L, d), of their joint projection (N, L, 3E) and its bias.

    >>> import flambeau as torch
    >>> [x.flatten() for x in torch._transform_bias_rescale_qkv(torch.arange(3.).view(1, 1, 3), torch.ones(3), 1)]
    [tensor([1.]), tensor([2.]), tensor([3.])]
    """
    batch, length, width = qkv.shape
    head_dim = width // 3 // num_heads
    q, k, v = [each.reshape(batch, length, num_heads, head_dim).transpose(1, 2).contiguous()
               for each in (qkv + qkv_bias).chunk(3, -1)]
    return q / head_dim**0.5, k, v


def why_not_packed(src: Tensor, valid: Tensor, mask_check: bool) -> str:
    """Why PyTorch does not pack sequences (N, L, E) by `valid`, (N, L): "" if each row is Trues, then Falses.

    Raises:
        RuntimeError: the shapes do not match.
    """
    if mask_check:
        if active_tracer.get() is not None:
            return "mask_check enabled with torch.compile or torch.export"
        if valid.dim() != 2:
            raise RuntimeError("Padding mask should be 2D")
        if valid.shape != src.shape[:2]:
            raise RuntimeError("Mask size should match input size")
        if not (valid.cumprod(1).sum(1) == valid.sum(1)).all():
            return "mask_check enabled, and src and src_key_padding_mask was not left aligned"
    return ""


def warn_of_nested_tensors() -> None:
    """Warn once, as PyTorch does where it makes its first nested tensor."""
    if not _warned_of_nested_tensors[0]:
        _warned_of_nested_tensors[0] = True
        warnings.warn("The PyTorch API of nested tensors is in prototype stage and will change in the near future. We "
                      "recommend specifying layout=torch.jagged when constructing a nested tensor, as this layout "
                      "receives active development, has better operator coverage, and works with torch.compile. "
                      "(Triggered internally at /__w/pytorch/pytorch/aten/src/ATen/NestedTensorImpl.cpp:177.)",
                      stacklevel=user_stacklevel())
