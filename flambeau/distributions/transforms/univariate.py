"""Transforms of single numbers."""

from __future__ import annotations

import math
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...dtypes import finfo
from .. import constraints
from ..constraints import Constraint
from ..distribution import Distribution
from ..utils import _Number, broadcast_all, lazy_property
from .transform import Transform

__all__ = ["AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform", "PowerTransform",
           "SigmoidTransform", "SoftplusTransform", "TanhTransform"]


class ExpTransform(Transform):
    """y = exp(x), from the real to the positive numbers.

    >>> import flambeau as torch
    >>> torch.distributions.ExpTransform()(torch.zeros(2))
    tensor([1., 1.])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, of positive numbers.

    Args:
        exponent: a number or a tensor that broadcasts with x.
        cache_size: the cache size.

    >>> import flambeau as torch
    >>> torch.distributions.PowerTransform(2.)(torch.tensor([3.]))
    tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Tensor:
        """The sign of the exponent."""
        sign: Tensor = self.exponent.sign()
        return sign

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all().item())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = (self.exponent * y / x).abs().log()
        return result

    def forward_shape(self, shape: Any) -> Any:
        return fn.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    def inverse_shape(self, shape: Any) -> Any:
        return fn.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))


def clipped_sigmoid(x: Tensor) -> Tensor:
    """The sigmoid, kept inside of (0, 1)."""
    info = finfo(x.dtype)
    clipped: Tensor = fn.clamp(fn.sigmoid(x), min=info.tiny, max=1.0 - info.eps)
    return clipped


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)), clamped inside of (0, 1).

    >>> import flambeau as torch
    >>> torch.distributions.SigmoidTransform()(torch.zeros(1))
    tensor([0.5000])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SigmoidTransform)

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        info = finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = -fn.softplus(-x) - fn.softplus(x)
        return result


class SoftplusTransform(Transform):
    """y = log(1 + exp(x)), from the real to the positive numbers; the identity above 20.

    >>> import flambeau as torch
    >>> torch.distributions.SoftplusTransform()(torch.zeros(1))
    tensor([0.6931])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftplusTransform)

    def _call(self, x: Tensor) -> Tensor:
        result: Tensor = fn.softplus(x)
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = -fn.softplus(-x)
        return result


class TanhTransform(Transform):
    """y = tanh(x). Where samples are scored, a cache avoids the inaccurate inverse near 1 and -1.

    >>> import flambeau as torch
    >>> torch.distributions.TanhTransform(cache_size=1)(torch.zeros(1))
    tensor([0.])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TanhTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        result: Tensor = fn.atanh(y)  # not clamped: samples outside of (-1, 1) are infinite or NaN
        return result

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)²) without cancellation
        result: Tensor = 2.0 * (math.log(2.0) - x - fn.softplus(-2.0 * x))
        return result


class AbsTransform(Transform):
    """y = |x|, whose inverse is the positive preimage.

    >>> import flambeau as torch
    >>> torch.distributions.AbsTransform()(torch.tensor([-2.]))
    tensor([2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, _Number) and isinstance(right, _Number):
        return bool(left == right)
    equal: Tensor = left == right
    return bool(equal.all().item())


class AffineTransform(Transform):
    """y = loc + scale · x.

    Args:
        loc, scale: numbers or tensors that broadcast with x.
        event_dim: the number of dimensions of one event. Default: 0.
        cache_size: the cache size.

    >>> import flambeau as torch
    >>> torch.distributions.AffineTransform(1., 2.)(torch.ones(1))
    tensor([3.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> Any:
        return self._event_dim

    def _space(self) -> Constraint:
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return self._space()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return self._space()

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, _Number):
            scale = float(self.scale)
            return 1 if scale > 0 else -1 if scale < 0 else 0
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        result: Tensor = self.loc + self.scale * x
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shape, scale = x.shape, self.scale
        if isinstance(scale, _Number):
            result = fn.full_like(x, math.log(abs(scale)))
        else:
            result = fn.abs(scale).log()
        if self.event_dim:
            result = result.view((*result.size()[:-self.event_dim], -1)).sum(-1)
            shape = shape[:-self.event_dim]
        expanded: Tensor = result.expand(shape)
        return expanded

    def _broadcast(self, shape: Any) -> Any:
        return fn.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    def forward_shape(self, shape: Any) -> Any:
        return self._broadcast(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._broadcast(shape)


class CumulativeDistributionTransform(Transform):
    """y = F(x), the distribution function of a distribution: uniform numbers from its samples.

    Args:
        distribution: defines `cdf`, `icdf` and `log_prob`.
        cache_size: the cache size.

    >>> import flambeau as torch
    >>> from flambeau.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0., 1.))(torch.zeros(1))
    tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
