"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..shapes import Size
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, P(X > x) = (1 + ξ (x - μ) / σ)^(-1 / ξ), exponential for ξ = 0.

    Args:
        loc: the lower bound μ, a tensor or a number.
        scale: the scale σ > 0.
        concentration: the shape ξ.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.GeneralizedPareto(0., 1., torch.tensor([0.5])).mean
    tensor([2.])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = fn.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(fn.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _is_exponential(self, zero: Tensor) -> tuple[Tensor, Tensor]:
        """Whether ξ is close to 0, and ξ with 1 in those places."""
        is_zero = fn.isclose(self.concentration, zero)
        return is_zero, fn.where(is_zero, fn.ones_like(self.concentration), self.concentration)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        is_zero, shape = self._is_exponential(fn.tensor(0.0))
        factor = 1 / shape + fn.ones_like(z)
        nonzero = fn.where(factor == 0, factor, factor * fn.log1p(shape * z))
        return -self.scale.log() - fn.where(is_zero, z, nonzero)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(X > value)."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        is_zero, shape = self._is_exponential(fn.tensor(0.0))
        result: Tensor = fn.where(is_zero, -z, -fn.log1p(shape * z) / shape)
        return result

    def log_cdf(self, value: Tensor) -> Tensor:
        """log P(X <= value)."""
        result: Tensor = fn.log1p(-fn.exp(self.log_survival_function(value)))
        return result

    def cdf(self, value: Tensor) -> Tensor:
        return fn.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, shape = self._is_exponential(fn.zeros_like(self.concentration))
        log_survival = fn.log1p(-value)
        nonzero = self.loc + self.scale / shape * fn.expm1(-shape * log_survival)
        return fn.where(is_zero, self.loc - self.scale * log_survival, nonzero)

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        result = self.loc + self.scale / (1 - fn.where(finite, self.concentration, 0.5))
        return fn.where(finite, result, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        shape = fn.where(finite, self.concentration, 0.25)
        result = self.scale ** 2 / ((1 - shape) ** 2 * (1 - 2 * shape))
        return fn.where(finite, result, math.nan)

    def entropy(self) -> Tensor:
        return fn.broadcast_to(fn.log(self.scale) + self.concentration + 1, self._batch_shape)

    @property
    def mode(self) -> Tensor:
        return self.loc
