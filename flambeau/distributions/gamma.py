"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..dtypes import finfo
from ..shapes import Size
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return fn._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """The gamma distribution, of density βᵅ xᵅ⁻¹ exp(-β x) / Γ(α) for x > 0.

    Args:
        concentration: the shape α > 0, a tensor or a number.
        rate: β > 0, the inverse of the scale.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.Gamma(torch.tensor([3.]), 2.).mean
    tensor([1.5000])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Gamma, batch_shape, _instance, "concentration", "rate")

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # outside of autograd: the gradient passes
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = fn.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (fn.xlogy(self.concentration, self.rate) + fn.xlogy(self.concentration - 1, value)
                - self.rate * value - fn.lgamma(self.concentration))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return fn.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (self.concentration - fn.log(self.rate) + fn.lgamma(self.concentration)
                + (1.0 - self.concentration) * fn.digamma(self.concentration))

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return fn.lgamma(x + 1) + (x + 1) * fn.log(-y.reciprocal())
