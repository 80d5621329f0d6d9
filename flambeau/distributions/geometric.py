"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor, no_grad
from .._tensor import functions as fn
from ..devices import contiguous_format
from ..dtypes import finfo
from ..nn.functional import binary_cross_entropy_with_logits
from ..shapes import Size
from . import constraints
from .binary_parameter import BinaryParameter, require_one
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(BinaryParameter):
    """The geometric distribution: the failures before the first success, P(X = k) = (1 - p)ᵏ p.

    `Tensor.geometric_` counts the success too.

    Args:
        probs: the probability of success p, in (0, 1], a tensor or a number.
        logits: log(p / (1 - p)), in place of `probs`.
        validate_args: whether to validate.

    Raises:
        ValueError: both or none of `probs` and `logits` are given, or a probability is 0.

    >>> import flambeau as torch
    >>> torch.distributions.Geometric(torch.tensor([0.25])).mean
    tensor([3.])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        require_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__((self.logits if probs is None else self.probs).size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            positive = value > 0
            if not positive.all():
                raise ValueError(f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of "
                                 f"distribution {self!r} to be positive but found invalid values:\n"
                                 f"{value.data[~positive]}")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Geometric, batch_shape, _instance, "probs", "logits")

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return fn.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            drawn = fn.empty(shape, dtype=self.probs.dtype, device=self.probs.device)
            drawn.uniform_(finfo(self.probs.dtype).tiny, 1)
            return (drawn.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0  # 0 · log 0 is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
