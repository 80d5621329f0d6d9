"""Decompositions of layers and losses."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as torch

from ..._tensor import Tensor
from ...dtypes import NARROW, float32
from .entries import decomposes, in_float32

_MEAN, _SUM = 1, 2


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    return loss.mean() if reduction == _MEAN else loss.sum() if reduction == _SUM else loss


def _normalized(x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Values less their mean over their deviation; the mean and the inverse deviation."""
    variance, average = torch.var_mean(x, dims, correction=0, keepdim=True)
    inverse = torch.rsqrt(variance + eps)
    return (x - average) * inverse, average, inverse


@decomposes("native_layer_norm")
def native_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Layer normalization, its means and inverse deviations."""
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    if input.numel() == 0:
        return NotImplemented
    wide = input.to(float32) if input.dtype.numpy in NARROW else input
    result, average, inverse = _normalized(wide, dims, eps)
    result = result if weight is None else result * weight
    result = result if bias is None else result + bias
    return result.to(input.dtype), average.to(input.dtype), inverse.to(input.dtype)


@decomposes("native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of dropout."""
    return grad_output * (mask.to(grad_output.dtype) * scale)


@decomposes("embedding")
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Tensor:
    """Rows of a matrix."""
    if indices.dim() == 1:
        return torch.index_select(weight, 0, indices)
    return torch.index_select(weight, 0, indices.reshape(-1)).view(*indices.shape, *weight.shape[1:])


@decomposes("embedding_dense_backward")
def embedding_dense_backward(grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int,
                             scale_grad_by_freq: bool) -> Tensor:
    """The gradient of the rows that were taken, summed."""
    wide = grad_output.to(float32) if grad_output.dtype.numpy in NARROW else grad_output
    places = indices.reshape(-1).long()
    rows = wide.reshape(places.numel(), *grad_output.shape[indices.dim():])
    if scale_grad_by_freq:
        counts = places.new_zeros(num_weights).index_add(0, places, torch.ones_like(places))
        rows = rows / counts[places].unsqueeze(-1)
    rows = torch.where((places == padding_idx).unsqueeze(-1), torch.zeros_like(rows), rows)
    zero = wide.new_zeros([num_weights, *rows.shape[1:]])
    return zero.index_add(0, places, rows).to(grad_output.dtype)


@decomposes("soft_margin_loss")
@in_float32
def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = _MEAN) -> Tensor:
    """`log(1 + exp(-x y))`."""
    return _reduced(torch.log1p(torch.exp(-self * target)), reduction)


@decomposes("binary_cross_entropy")
@in_float32
def binary_cross_entropy(self: Tensor, target: Tensor, weight: Tensor | None = None,
                         reduction: int = _MEAN) -> Tensor:
    """The cross entropy of probabilities; logarithms are at least -100."""
    low = torch.scalar_tensor(-100, dtype=self.dtype)
    loss = (target - 1) * torch.maximum(torch.log1p(-self), low) - target * torch.maximum(torch.log(self), low)
    return _reduced(loss if weight is None else loss * weight, reduction)
