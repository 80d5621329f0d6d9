"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor, no_grad
from .._tensor import functions as fn
from ..shapes import Size
from . import constraints
from .binary_parameter import BinaryParameter, require_one
from .gamma import Gamma
from .utils import broadcast_all, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameter):
    """The negative binomial distribution: the successes of probability p before r failures.

    Args:
        total_count: r >= 0, a tensor or a number; need not be an integer.
        probs: p in [0, 1), a tensor or a number.
        logits: log(p / (1 - p)), in place of `probs`.
        validate_args: whether to validate.

    Raises:
        ValueError: both or none of `probs` and `logits` are given.

    >>> import flambeau as torch
    >>> torch.distributions.NegativeBinomial(3, torch.tensor([0.5])).mean
    tensor([3.])
    """

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        require_one(probs, logits)
        total_count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = total_count.type_as(given)
        self._store_parameter(*((None, given) if probs is None else (given, None)))
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_binary(NegativeBinomial, batch_shape, _instance, "total_count")

    @property
    def mean(self) -> Tensor:
        return self.total_count * fn.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / fn.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        """The distribution of the rate of the Poisson distribution that a sample comes from."""
        return Gamma(concentration=self.total_count, rate=fn.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return fn.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        unnormalized = self.total_count * fn.logsigmoid(-self.logits) + value * fn.logsigmoid(self.logits)
        normalizer = (-fn.lgamma(self.total_count + value) + fn.lgamma(1.0 + value) + fn.lgamma(self.total_count))
        # 0 successes before 0 failures: certain, where both logarithms are infinite
        normalizer = normalizer.masked_fill(self.total_count + value == 0.0, 0.0)
        return unnormalized - normalizer
