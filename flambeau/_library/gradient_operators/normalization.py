"""Gradients of normalizations as operators, from the statistics that the operators returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...engine.grad_mode import grad_mode
from ...nn import functional as F
from .vector_jacobian import vector_jacobian

_Gradients = tuple["Tensor | None", ...]


def _by_input(g: Tensor, normalized: Tensor, rstd: Tensor, dims: Sequence[int]) -> Tensor:
    """The gradient of (input - mean) · rstd by the input, both statistics being the input's."""
    dims = tuple(dims)
    return rstd * (g - fn.mean(g, dims, True) - normalized * fn.mean(g * normalized, dims, True))


def _statistics(input: Tensor, mean: Tensor, rstd: Tensor, dims: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The statistics as functions of the input, so that second derivatives go through them."""
    if not (grad_mode.get() and input._requires_grad):
        return mean, rstd
    dims = tuple(dims)
    own = fn.mean(input, dims, True)
    variance = fn.mean((input - own).square(), dims, True)
    eps = (1 / rstd.square() - variance).detach()
    return own, fn.rsqrt(variance + eps)


def _sum(x: Tensor, dims: Sequence[int]) -> Tensor:
    return fn.sum(x, tuple(dims)) if dims else x


def _layer_norm(grad_out: Tensor, input: Tensor, normalized_shape: Sequence[int], mean: Tensor, rstd: Tensor,
                weight: Tensor | None, bias: Tensor | None, output_mask: Sequence[bool]) -> _Gradients:
    first = input.ndim - len(normalized_shape)
    last, rest = range(first, input.ndim), range(first)
    mean, rstd = _statistics(input, mean, rstd, last)
    normalized = (input - mean) * rstd
    scaled = grad_out if weight is None else grad_out * weight
    return (_by_input(scaled, normalized, rstd, last) if output_mask[0] else None,
            _sum(grad_out * normalized, rest) if output_mask[1] else None,
            _sum(grad_out, rest) if output_mask[2] else None)


def _group_norm(grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, N: int, C: int,
                HxW: int, group: int, output_mask: Sequence[bool]) -> _Gradients:
    by_group, by_channel = (N, group, C // group * HxW), (N, C, HxW)
    grouped = input.reshape(by_group)
    mean, deviation = _statistics(grouped, mean.reshape(N, group, 1), rstd.reshape(N, group, 1), (2,))
    normalized = (grouped - mean) * deviation
    flat = grad_out.reshape(by_channel)
    scaled = flat if weight is None else flat * weight.reshape(1, C, 1)
    return (_by_input(scaled.reshape(by_group), normalized, deviation, (2,)).reshape(input.shape)
            if output_mask[0] else None,
            fn.sum(flat * normalized.reshape(by_channel), (0, 2)) if output_mask[1] else None,
            fn.sum(flat, (0, 2)) if output_mask[2] else None)


def _batch_norm(grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None,
                running_var: Tensor | None, save_mean: Tensor | None, save_invstd: Tensor | None, train: bool,
                eps: float, output_mask: Sequence[bool]) -> _Gradients:
    dims = (0, *range(2, input.ndim))
    across = (1, -1, *(1 for _ in dims[1:]))
    if train:
        if save_mean is None or save_invstd is None:
            raise RuntimeError("native_batch_norm_backward: training needs the statistics of the batch")
        mean, rstd = _statistics(input, save_mean.reshape(across), save_invstd.reshape(across), dims)
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError("native_batch_norm_backward: evaluation needs running statistics")
        mean, rstd = running_mean, fn.rsqrt(running_var + eps).reshape(across)
    normalized = (input - mean.reshape(across)) * rstd
    scaled = grad_out if weight is None else grad_out * weight.reshape(across)
    by_input = None
    if output_mask[0]:
        by_input = _by_input(scaled, normalized, rstd, dims) if train else scaled * rstd
    return (by_input, fn.sum(grad_out * normalized, dims) if output_mask[1] else None,
            fn.sum(grad_out, dims) if output_mask[2] else None)


def _batch_norm_with_reserve(grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None,
                             running_var: Tensor | None, save_mean: Tensor | None, save_var: Tensor | None,
                             update: bool, eps: float, output_mask: Sequence[bool], reserve: Tensor) -> _Gradients:
    return _batch_norm(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps,
                       output_mask)


def _weight_norm(grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int) -> _Gradients:
    """The gradients of the direction and of the magnitude."""
    dims = tuple(d for d in range(saved_v.ndim) if d != dim % saved_v.ndim)
    along = fn.sum(grad_w * saved_v, dims, True)
    norms = saved_norms.reshape(along.shape)
    return (saved_g / norms * (grad_w - saved_v * (along / (norms * norms)))).to(grad_w.dtype), along / norms


def _masked_softmax(grad_output: Tensor, output: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """The gradient of a softmax over the elements outside the mask, zero under it."""
    along = output.ndim - 1 if dim is None else dim
    kept = output.masked_fill(mask.expand(output.shape).bool(), 0)
    return kept * (grad_output - fn.sum(kept * grad_output, along, True))


def _dropout(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad_output * (mask.to(grad_output.dtype) * scale)


def _attention(grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor,
               dropout_p: float, is_causal: bool, *, attn_mask: Tensor | None = None,
               scale: float | None = None) -> _Gradients:
    if dropout_p:
        raise RuntimeError("scaled_dot_product_flash_attention_for_cpu_backward: dropout is not supported")
    return vector_jacobian(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask, 0.0, is_causal,
                                                                          scale=scale), [query, key, value],
                           (grad_out,))



#: "aten.name.overload" -> kernel
KERNELS: dict[str, Callable[..., Any]] = {
    "aten.native_layer_norm_backward.default": _layer_norm,
    "aten.native_group_norm_backward.default": _group_norm,
    "aten.native_batch_norm_backward.default": _batch_norm,
    "aten.batch_norm_backward.default": _batch_norm_with_reserve,
    "aten._weight_norm_interface_backward.default": _weight_norm,
    "aten._weight_norm_differentiable_backward.default": _weight_norm,
    "aten._masked_softmax_backward.default": _masked_softmax,
    "aten.native_dropout_backward.default": _dropout,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward.default": _attention,
}

__all__ = ["KERNELS"]
