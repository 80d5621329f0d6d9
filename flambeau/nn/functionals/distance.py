"""Pairwise distance, cosine similarity, normalization to unit norm."""

from __future__ import annotations

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.fastpath.repeated_calls import repeated

__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]

cosine_similarity, pairwise_distance = fn.cosine_similarity, fn.pairwise_distance


@repeated
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12,
              out: Tensor | None = None) -> Tensor:
    """Normalize to unit norm: x / max(‖x‖ₚ, eps) along `dim`.

    Args:
        input: float tensor of any shape.
        p: order of the norm.
        dim: the dimension, or dimensions, of the vectors.
        eps: lower bound of the norm.
        out: tensor that receives the result; not differentiable.

    >>> import flambeau as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    norm = input.norm(p, dim, keepdim=True)
    if out is None:
        return input / norm.clamp_min(eps).expand_as(input)
    return fn.div(input, norm.clamp_min_(eps).expand_as(input), out=out)
