"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..shapes import Size
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy (Lorentz) distribution, of density 1 / (π γ (1 + ((x - x₀) / γ)²)). It has no moments.

    Args:
        loc: the median x₀, a tensor or a number.
        scale: half of the width at half of the maximum, γ > 0.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.Cauchy(0., 1.).cdf(torch.zeros(1))
    tensor([0.5000])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Cauchy, batch_shape, _instance, "loc", "scale")

    def _constant(self, value: float) -> Tensor:
        filled: Tensor = fn.full(self._extended_shape(), value, dtype=self.loc.dtype, device=self.loc.device)
        return filled

    @property
    def mean(self) -> Tensor:
        return self._constant(math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._constant(math.inf)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = fn.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return fn.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return fn.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
