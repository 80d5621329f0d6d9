"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor, no_grad
from .._tensor import functions as fn
from ..nn.functional import binary_cross_entropy_with_logits
from ..shapes import Size
from . import constraints
from .binary_parameter import BinaryParameter, require_one
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameter, ExponentialFamily):
    """The continuous Bernoulli distribution, of density C(p) pˣ (1 - p)¹⁻ˣ for 0 <= x <= 1.

    Near p = 1/2 the normalizer C(p) is computed by its Taylor series.

    Args:
        probs: p in (0, 1), a tensor or a number.
        logits: log(p / (1 - p)), in place of `probs`.
        lims: the bounds of the region around 1/2 in which the Taylor series is used.
        validate_args: whether to validate.

    Raises:
        ValueError: both or none of `probs` and `logits` are given.

    >>> import flambeau as torch
    >>> torch.distributions.ContinuousBernoulli(torch.tensor([0.5])).mean
    tensor([0.5000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
                 validate_args: bool | None = None) -> None:
        require_one(probs, logits)
        if probs is not None:
            (probs,) = broadcast_all(probs)
            if validate_args is not None and not self.arg_constraints["probs"].check(probs).all():
                raise ValueError("The parameter probs has invalid values")
            probs = clamp_probs(probs)
        else:
            (logits,) = broadcast_all(logits)
        self._store_parameter(probs, logits)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_binary(ContinuousBernoulli, batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter p, clamped inside of (0, 1)."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        outside: Tensor = fn.max(fn.le(self.probs, self._lims[0]), fn.gt(self.probs, self._lims[1]))
        return outside

    def _cut_probs(self) -> Tensor:
        """p, replaced in the region around 1/2 by its lower bound."""
        cut: Tensor = fn.where(self._outside_unstable_region(), self.probs,
                               self._lims[0] * fn.ones_like(self.probs))
        return cut

    def _cont_bern_log_norm(self) -> Tensor:
        """log C(p)."""
        cut = self._cut_probs()
        below = fn.where(fn.le(cut, 0.5), cut, fn.zeros_like(cut))
        above = fn.where(fn.ge(cut, 0.5), cut, fn.ones_like(cut))
        log_norm = fn.log(fn.abs(fn.log1p(-cut) - fn.log(cut))) - fn.where(
            fn.le(cut, 0.5), fn.log1p(-2.0 * below), fn.log(2.0 * above - 1.0))
        x = fn.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        result: Tensor = fn.where(self._outside_unstable_region(), log_norm, taylor)
        return result

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (fn.log1p(-cut) - fn.log(cut))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * fn.pow(x, 2)) * x
        return fn.where(self._outside_unstable_region(), exact, taylor)

    @property
    def stddev(self) -> Tensor:
        return fn.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        exact = cut * (cut - 1.0) / fn.pow(1.0 - 2.0 * cut, 2) + 1.0 / fn.pow(fn.log1p(-cut) - fn.log(cut), 2)
        x = fn.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return fn.where(self._outside_unstable_region(), exact, taylor)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(fn.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        exact = (fn.pow(cut, value) * fn.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = fn.where(self._outside_unstable_region(), exact, value)
        return fn.where(fn.le(value, 0.0), fn.zeros_like(value),
                        fn.where(fn.ge(value, 1.0), fn.ones_like(value), inside))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut_probs()
        exact = (fn.log1p(-cut + value * (2.0 * cut - 1.0)) - fn.log1p(-cut)) / (fn.log(cut) - fn.log1p(-cut))
        return fn.where(self._outside_unstable_region(), exact, value)

    def entropy(self) -> Tensor:
        log_0, log_1 = fn.log1p(-self.probs), fn.log(self.probs)
        return self.mean * (log_0 - log_1) - self._cont_bern_log_norm() - log_0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        outside = fn.max(fn.le(x, low), fn.gt(x, high))
        cut = fn.where(outside, x, low * fn.ones_like(x))
        exact = fn.log(fn.abs(fn.expm1(cut))) - fn.log(fn.abs(cut))
        taylor = 0.5 * x + fn.pow(x, 2) / 24.0 - fn.pow(x, 4) / 2880.0
        return fn.where(outside, exact, taylor)
