"""Distance and similarity layers."""

from __future__ import annotations

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """p-norm of the difference: ‖x1 - x2 + eps‖ₚ along the last dimension.

    Args:
        p: the norm's order.
        eps: added to the difference, against division by zero in the gradient.
        keepdim: keep the last dimension with size 1.

    Shape:
        x1 and x2 (N, D) or (D,), output (N,) or (), with `keepdim` (N, 1) or (1,).

    >>> import flambeau as torch
    >>> torch.nn.PairwiseDistance()(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Cosine similarity: x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`.

    Args:
        dim: the dimension of the vectors.
        eps: lower bound of the norms.

    Shape:
        x1 and x2 (..., D, ...), broadcastable; output (..., ...), without `dim`.

    >>> import flambeau as torch
    >>> torch.nn.CosineSimilarity()(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
