"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moments(a: Tensor, b: Tensor, n: int) -> Tensor:
    """The n-th moment, b B(1 + n / a, b)."""
    x = 1 + n / a
    moment: Tensor = b * fn.exp(fn.lgamma(x) + fn.lgamma(b) - fn.lgamma(x + b))
    return moment


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution on (0, 1), P(X <= x) = 1 - (1 - xᵃ)ᵇ.

    Args:
        concentration1: a > 0, a tensor or a number.
        concentration0: b > 0.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.Kumaraswamy(torch.tensor([1.]), 1.).mean
    tensor([0.5000])
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base_dist = Uniform(fn.full_like(self.concentration0, 0), fn.full_like(self.concentration0, 1),
                            validate_args=validate_args)
        super().__init__(base_dist, [
            PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal())], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return _moments(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode: Tensor = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        log_mode[(b < 1) | (a < 1)] = math.nan
        return log_mode.exp()

    @property
    def variance(self) -> Tensor:
        return _moments(self.concentration1, self.concentration0, 2) - fn.pow(self.mean, 2)

    def entropy(self) -> Tensor:
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = fn.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * harmonic - fn.log(self.concentration1) - fn.log(self.concentration0)
