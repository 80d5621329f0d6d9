"""The LKJ distribution of Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..dtypes import finfo
from ..shapes import Size
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The distribution of Cholesky factors of correlation matrices M, of density proportional to det(M)^(η - 1).

    Samples are drawn by the onion method (Lewandowski, Kurowicka and Joe, 2009).

    Args:
        dim: the size of the matrices, at least 2.
        concentration: η > 0, a tensor or a number; at 1 all correlation matrices have equal density.
        validate_args: whether to validate.

    Raises:
        ValueError: `dim` is below 2.

    >>> import flambeau as torch
    >>> torch.distributions.LKJCholesky(2, 1.).log_prob(torch.eye(2))
    tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # row i has squared norm Beta((i - 1) / 2 + 1/2, ...) below the diagonal; the first row is not used
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = fn.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = fn.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_parameters(LKJCholesky, batch_shape, _instance, "concentration")
        new.dim = self.dim
        new._beta = self._beta.expand((*new.batch_shape, self.dim))
        return new

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = fn.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
        directions = normal / normal.norm(dim=-1, keepdim=True)
        directions[..., 0, :].fill_(0.0)  # 0 / 0
        w: Tensor = fn.sqrt(y) * directions
        diagonal = fn.clamp(1 - fn.sum(w ** 2, dim=-1), min=finfo(w.dtype).tiny).sqrt()
        w += fn.diag_embed(diagonal)
        return w

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = fn.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = fn.sum(order * diagonal.log(), dim=-1)
        # the normalizer, page 1999 of the article
        dm1 = self.dim - 1
        alpha = self.concentration + 0.5 * dm1
        denominator = fn.lgamma(alpha) * dm1
        numerator = fn.mvlgamma(alpha - 0.5, dm1)
        return unnormalized - (0.5 * dm1 * math.log(math.pi) + numerator - denominator)
