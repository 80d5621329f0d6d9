"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..devices import contiguous_format
from ..shapes import Size
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution: μ + σ X / √(Z / ν), X standard normal and Z chi-squared of ν degrees of freedom.

    Args:
        df: the degrees of freedom ν > 0, a tensor or a number.
        loc: the location μ.
        scale: the scale σ > 0.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.StudentT(torch.tensor([1.])).log_prob(torch.zeros(1))
    tensor([-1.1447])
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(StudentT, batch_shape, _instance, "df", "loc", "scale", "_chi2")

    @property
    def mean(self) -> Tensor:
        mean: Tensor = self.loc.clone(memory_format=contiguous_format)
        mean[self.df <= 1] = math.nan
        return mean

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance: Tensor = self.df.clone(memory_format=contiguous_format)
        finite = self.df > 2
        variance[finite] = self.scale[finite].pow(2) * self.df[finite] / (self.df[finite] - 2)
        variance[(self.df <= 2) & (self.df > 1)] = math.inf
        variance[self.df <= 1] = math.nan
        return variance

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * (normal * fn.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
                      + fn.lgamma(0.5 * self.df) - fn.lgamma(0.5 * (self.df + 1.0)))
        return -0.5 * (self.df + 1.0) * fn.log1p(y ** 2.0 / self.df) - normalizer

    def entropy(self) -> Tensor:
        log_beta = fn.lgamma(0.5 * self.df) + math.lgamma(0.5) - fn.lgamma(0.5 * (self.df + 1))
        return (self.scale.log()
                + 0.5 * (self.df + 1) * (fn.digamma(0.5 * (self.df + 1)) - fn.digamma(0.5 * self.df))
                + 0.5 * self.df.log() + log_beta)
