"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..dtypes import finfo
from ..shapes import Size
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution, of density exp(-|x - μ| / b) / (2 b).

    Args:
        loc: the mean μ, a tensor or a number.
        scale: the scale b > 0.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.Laplace(0., 1.).log_prob(torch.zeros(1))
    tensor([-0.6931])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Laplace, batch_shape, _instance, "loc", "scale")

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2 ** 0.5 * self.scale

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = fn.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
        drawn.uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * drawn.sign() * fn.log1p(-drawn.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -fn.log(2 * self.scale) - fn.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 - 0.5 * (value - self.loc).sign() * fn.expm1(-(value - self.loc).abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        distance = value - 0.5
        return self.loc - self.scale * distance.sign() * fn.log1p(-2 * distance.abs())

    def entropy(self) -> Tensor:
        return 1 + fn.log(2 * self.scale)
