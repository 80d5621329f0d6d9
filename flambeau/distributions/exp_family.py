"""The base class of exponential families: entropy by differentiating the log normalizer."""

from __future__ import annotations

from typing import Any

from .. import autograd
from .._tensor import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions of density exp(⟨t(x), θ⟩ - F(θ) + k(x)), with natural parameters θ.

    Subclasses define `_natural_params` (θ), `_log_normalizer` (F) and `_mean_carrier_measure` (the expectation of k).
    The entropy follows as F(θ) - ⟨θ, ∇F(θ)⟩ - E[k(x)].

    >>> import flambeau as torch
    >>> isinstance(torch.distributions.Poisson(1.), torch.distributions.ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *args: Any, **kwargs: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        carrier = self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*params)
        gradients = autograd.grad(log_normalizer.sum(), params, create_graph=True)
        result: Tensor = -carrier + log_normalizer
        for param, gradient in zip(params, gradients, strict=True):
            result = result - (param * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
