"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..dtypes import finfo
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import _Number, broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution, P(X <= x) = exp(-exp(-(x - μ) / β)).

    Args:
        loc: the mode μ, a tensor or a number.
        scale: β > 0.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.Gumbel(torch.tensor([0.]), 1.).mean
    tensor([0.5772])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        low, high = info.tiny, 1 - info.eps
        if isinstance(loc, _Number) and isinstance(scale, _Number):
            base_dist = Uniform(low, high, validate_args=validate_args)
        else:
            base_dist = Uniform(fn.full_like(self.loc, low), fn.full_like(self.loc, high),
                                validate_args=validate_args)
        super().__init__(base_dist, [
            ExpTransform().inv, AffineTransform(loc=0, scale=-fn.ones_like(self.scale)),
            ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale)], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc = self.loc.expand(batch_shape)
        new.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Tensor) -> Tensor:
        # shorter than the sum over the transforms
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
