"""Distances and similarities of vectors."""

from __future__ import annotations

from ...tensor import Tensor, no_grad
from ...tensor import functions as fn

__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12,
              out: Tensor | None = None) -> Tensor:
    """x / max(‖x‖ₚ, eps) along `dim`.

    >>> import flambeau as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    norm = input.norm(p, dim, keepdim=True)
    if out is None:
        return input / norm.clamp_min(eps).expand_as(input)
    return fn.div(input, norm.clamp_min_(eps).expand_as(input), out=out)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """‖x1 - x2 + eps‖ₚ along the last dimension."""
    return fn.norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`.

    >>> import flambeau as torch
    >>> torch.nn.functional.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    dtype = fn.result_type(x1, x2)
    if not dtype.is_floating_point:
        raise RuntimeError("expected common dtype to be floating point, "
                           f"yet common dtype is {str(dtype).rpartition('.')[2].capitalize()}")
    x1, x2 = fn.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    return (x1 / _clamped_norm(x1, dim, eps) * (x2 / _clamped_norm(x2, dim, eps))).sum(dim)


def _clamped_norm(x: Tensor, dim: int, eps: float) -> Tensor:
    norm = fn.norm(x, 2, dim, True).clone()
    with no_grad():
        norm.clamp_min_(eps)
    return norm
