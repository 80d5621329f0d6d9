"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor, no_grad
from .._tensor import functions as fn
from ..shapes import Size
from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: component i with probability pᵢ, of density Σ pᵢ pᵢ(x).

    Args:
        mixture_distribution: a `Categorical`, which selects the component.
        component_distribution: a distribution; the last dimension of its batch shape is that of the components.
        validate_args: whether to validate.

    Raises:
        ValueError: the distributions are of other types, or their batch shapes or numbers of components differ.

    >>> import flambeau as torch
    >>> from flambeau.distributions import Categorical, MixtureSameFamily, Normal
    >>> MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.tensor([-1., 3.]), torch.ones(2))).mean
    tensor(1.)
    """

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")

        mixture_shape = mixture_distribution.batch_shape
        batch_shape = component_distribution.batch_shape[:-1]
        if any(i != j and i != 1 and j != 1
               for i, j in zip(reversed(mixture_shape), reversed(batch_shape), strict=False)):
            raise ValueError(f"`mixture_distribution.batch_shape` ({mixture_shape}) is not compatible with "
                             f"`component_distribution.batch_shape`({batch_shape})")
        count = mixture_distribution.logits.shape[-1]
        components = component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(f"`mixture_distribution component` ({count}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({components})")
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape=batch_shape, event_shape=event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        batch_shape = Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        self._initialize_expanded(new, batch_shape)
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _over_components(self, values: Tensor) -> Tensor:
        """The expectation over the components of their `values`."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        total: Tensor = fn.sum(probs * values, dim=-1 - self._event_ndims)
        return total

    @property
    def mean(self) -> Tensor:
        return self._over_components(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        # the law of total variance
        within = self._over_components(self.component_distribution.variance)
        return within + self._over_components((self.component_distribution.mean - self._pad(self.mean)).pow(2.0))

    def cdf(self, x: Tensor) -> Tensor:
        values = self.component_distribution.cdf(self._pad(x))
        return fn.sum(values * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        values = self.component_distribution.log_prob(self._pad(x))
        return fn.logsumexp(values + fn.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)  # of the components
            event_shape = self.event_shape
            index = self.mixture_distribution.sample(sample_shape)
            shape = index.shape
            samples = self.component_distribution.sample(sample_shape)
            index = index.reshape(shape + Size([1] * (len(event_shape) + 1)))
            index = index.repeat(Size([1] * len(shape)) + Size([1]) + event_shape)
            return fn.gather(samples, dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """`x`, (..., components), with dimensions of size 1 for the batch and the event of the components."""
        batch_ndims, mixture_ndims = len(self.batch_shape), len(self.mixture_distribution.batch_shape)
        pad_ndims = 0 if mixture_ndims == 1 else batch_ndims - mixture_ndims
        shape = x.shape
        return x.reshape(shape[:-1] + Size(pad_ndims * [1]) + shape[-1:] + Size(self._event_ndims * [1]))

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
