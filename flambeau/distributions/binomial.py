"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor, no_grad
from .._tensor import functions as fn
from ..shapes import Size
from . import constraints
from .binary_parameter import BinaryParameter, require_one
from .utils import broadcast_all

__all__ = ["Binomial"]


def _clamp_by_zero(x: Tensor) -> Tensor:
    """max(x, 0), of derivative 1/2 at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(BinaryParameter):
    """The binomial distribution: the number of successes in n trials of probability p.

    Args:
        total_count: n, a tensor or a number.
        probs: p, a tensor or a number.
        logits: log(p / (1 - p)), in place of `probs`.
        validate_args: whether to validate.

    Raises:
        ValueError: both or none of `probs` and `logits` are given.

    >>> import flambeau as torch
    >>> torch.distributions.Binomial(10, torch.tensor([0.25])).mean
    tensor([2.5000])
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        require_one(probs, logits)
        total_count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = total_count.type_as(given)
        self._store_parameter(*((None, given) if probs is None else (given, None)))
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_binary(Binomial, batch_shape, _instance, "total_count")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return fn.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, k = self.total_count, value
        log_n, log_k, log_rest = fn.lgamma(n + 1), fn.lgamma(k + 1), fn.lgamma(n - k + 1)
        # n log(1 + exp(logits)), without overflow
        normalizer = n * _clamp_by_zero(self.logits) + n * fn.log1p(fn.exp(-fn.abs(self.logits))) - log_n
        return k * self.logits - log_k - log_rest - normalizer

    def _homogeneous_count(self, method: str) -> int:
        total_count = int(self.total_count.max())
        if not self.total_count.min() == total_count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{method}`.")
        return total_count

    def entropy(self) -> Tensor:
        self._homogeneous_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(fn.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total_count = self._homogeneous_count("enumerate_support")
        values = fn.arange(1 + total_count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
