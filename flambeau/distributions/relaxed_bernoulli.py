"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..shapes import Size
from . import constraints
from .binary_parameter import BinaryParameter, require_one
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryParameter):
    """The log odds of relaxed Bernoulli samples, a logistic distribution (Maddison et al., 2017).

    Args:
        temperature: the temperature of the relaxation.
        probs: the probability p, a tensor or a number.
        logits: log(p / (1 - p)), in place of `probs`.
        validate_args: whether to validate.

    Raises:
        ValueError: both or none of `probs` and `logits` are given.

    >>> import flambeau as torch
    >>> from flambeau.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(torch.tensor(1.), torch.tensor([0.5])).log_prob(torch.zeros(1))
    tensor([-1.3863])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        self.temperature = temperature
        require_one(probs, logits)
        self._store_parameter(*(None if given is None else broadcast_all(given)[0] for given in (probs, logits)))
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_binary(LogitRelaxedBernoulli, batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        drawn = clamp_probs(fn.rand(shape, dtype=probs.dtype, device=probs.device))
        return (drawn.log() - (-drawn).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A continuous relaxation of the Bernoulli distribution on (0, 1), with gradients by the probability.

    Samples are sigmoid((logit(p) + logit(u)) / temperature), u uniform; they approach 0 and 1 at low temperatures.

    Args:
        temperature: the temperature of the relaxation.
        probs: the probability p, a tensor or a number.
        logits: log(p / (1 - p)), in place of `probs`.
        validate_args: whether to validate.

    Raises:
        ValueError: both or none of `probs` and `logits` are given.

    >>> import flambeau as torch
    >>> torch.distributions.RelaxedBernoulli(torch.tensor(1.), torch.tensor([0.5])).log_prob(torch.tensor([0.5]))
    tensor([0.])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> Any:
        """The temperature of the relaxation."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The log odds of the probability."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probability."""
        return self.base_dist.probs
