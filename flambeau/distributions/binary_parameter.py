"""The parameter of events that happen or not: probabilities or their log odds, each computed from the other."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits


def require_one(probs: Any, logits: Any) -> None:
    """Raise an error unless exactly one of the parameters is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class BinaryParameter(Distribution):
    """A distribution with the attributes `probs` and `logits`, of which one is stored and the other is lazy."""

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds log(p / (1 - p))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    _param: Any

    def _store_parameter(self, probs: Any, logits: Any) -> None:
        if probs is not None:
            self._param = self.probs = probs
        else:
            self._param = self.logits = logits

    def _expand_binary(self, owner: type, batch_shape: Any, instance: Any, *names: str) -> Any:
        new = self._expand_parameters(owner, batch_shape, instance, "probs", "logits", *names)
        new._param = new.logits if "logits" in self.__dict__ else new.probs
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()
