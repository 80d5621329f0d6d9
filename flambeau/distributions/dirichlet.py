"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..autograd.function import Function, once_differentiable
from ..nn.functional import one_hot
from ..shapes import Size
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient by the concentration, of samples `x`."""
    total = concentration.sum(-1, True).expand_as(concentration)
    slope = fn._dirichlet_grad(x, concentration, total)
    result: Tensor = slope * (grad_output - (x * grad_output).sum(-1, True))
    return result


class _Dirichlet(Function):
    """Samples, differentiable once by implicit reparameterization."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x: Tensor = fn._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution on the simplex, of density Γ(Σ αᵢ) / Π Γ(αᵢ) · Π xᵢ^(αᵢ - 1).

    Args:
        concentration: α > 0, (..., k).
        validate_args: whether to validate.

    Raises:
        ValueError: `concentration` has no dimension.

    >>> import flambeau as torch
    >>> torch.distributions.Dirichlet(torch.tensor([1., 3.])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Dirichlet, _instance)
        batch_shape = Size(batch_shape)
        new.concentration = self.concentration.expand(batch_shape + self.event_shape)
        self._initialize_expanded(new, batch_shape)
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (fn.xlogy(self.concentration - 1.0, value).sum(-1) + fn.lgamma(self.concentration.sum(-1))
                - fn.lgamma(self.concentration).sum(-1))

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # where all are below 1, the density is largest at a corner
        corner = (self.concentration < 1).all(dim=-1)
        mode[corner] = one_hot(mode[corner].argmax(dim=-1), above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (fn.lgamma(self.concentration).sum(-1) - fn.lgamma(total) - (k - total) * fn.digamma(total)
                - ((self.concentration - 1.0) * fn.digamma(self.concentration)).sum(-1))

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - fn.lgamma(x.sum(-1))
