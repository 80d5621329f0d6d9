"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution, P(X > x) = exp(-(x / λ)ᵏ).

    Args:
        scale: λ > 0, a tensor or a number.
        concentration: k > 0.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.Weibull(torch.tensor([2.]), 1.).mean
    tensor([2.])
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        super().__init__(Exponential(fn.ones_like(self.scale), validate_args=validate_args), self._of_exponential(),
                         validate_args=validate_args)

    def _of_exponential(self) -> list[Any]:
        """The transforms of exponential numbers of mean 1."""
        return [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        TransformedDistribution.__init__(new, self.base_dist.expand(batch_shape), Weibull._of_exponential(new),
                                         validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * fn.exp(fn.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (fn.exp(fn.lgamma(1 + 2 * self.concentration_reciprocal))
                                    - fn.exp(2 * fn.lgamma(1 + self.concentration_reciprocal)))

    def entropy(self) -> Tensor:
        return (euler_constant * (1 - self.concentration_reciprocal)
                + fn.log(self.scale * self.concentration_reciprocal) + 1)
