"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..devices import contiguous_format
from ..shapes import Size
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """The multinomial distribution: how many of n categorical samples are in each category.

    Args:
        total_count: n, an int.
        probs: weights of the categories, (..., k), normalized to sum 1.
        logits: logarithms of weights, in place of `probs`.
        validate_args: whether to validate.

    Raises:
        NotImplementedError: `total_count` is no int.
        ValueError: both or none of `probs` and `logits` are given.

    >>> import flambeau as torch
    >>> torch.distributions.Multinomial(4, torch.tensor([1., 3.])).mean
    tensor([1., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_parameters(Multinomial, batch_shape, _instance, "_categorical")
        new.total_count = self.total_count
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        trials = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        trials = trials.permute(*range(1, trials.dim()), 0)
        counts = trials.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, trials, fn.ones_like(trials))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = fn.tensor(self.total_count)
        t1 = n * self._categorical.entropy() - fn.lgamma(n + 1)
        support = self._binomial.enumerate_support(expand=False)[1:]
        t2 = (fn.exp(self._binomial.log_prob(support)) * fn.lgamma(support + 1)).sum([0, -1])
        return t1 + t2

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=contiguous_format)
        log_n = fn.lgamma(value.sum(-1) + 1)
        log_parts = fn.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -math.inf)] = 0  # 0⁰ is 1
        return log_n - log_parts + (logits * value).sum(-1)
