"""Methods that fill a tensor with samples of one distribution."""

from __future__ import annotations

from typing import Any

from ...kernels import random as kernels
from ..tensor import Tensor
from .draws import fill, sample
from .generators import Generator


def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None,
             **kwargs: Any) -> Tensor:
    """Fill with samples of the uniform distribution over [from, to).

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).uniform_(-1, 1)
    tensor([-0.0075,  0.5364, -0.8230])
    """
    low, high = float(kwargs.pop("from", from_)), float(to)
    d = self._array.dtype
    return fill(self, "_uniform_UniformBackward0",
                 lambda n, _: sample(kernels.uniform, generator, n, d, low, high), (), "default", (low, high),
                 generator)


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a normal distribution.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).normal_(mean=10, std=2)
    tensor([13.0820,  9.4131,  5.6424])
    """
    d = self._array.dtype
    return fill(self, "_normal_NormalBackward0",
                 lambda n, c: sample(kernels.normal, generator, n, d, float(mean), float(std), c), (), "default",
                 (mean, std), generator)


_NOT_GIVEN: Any = object()


def random_(self: Tensor, from_: Any = None, to: Any = _NOT_GIVEN, *, generator: Generator | None = None,
            **kwargs: Any) -> Tensor:
    """Fill with uniform integers over the range of the dtype, over [0, to), or over [from, to).

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(5).random_(10)
    tensor([4., 9., 3., 0., 3.])
    """
    low, high = kwargs.pop("from", from_), None if to is _NOT_GIVEN else to
    args: tuple[Any, ...]
    if to is _NOT_GIVEN and from_ is not None:
        low, high, node = None, from_, "RandomBackward1"
        overload, args = "to", (high,)
    elif low is None and high is None:
        node, overload, args = "RandomBackward2", "default", ()
    else:
        node, overload, args = "RandomBackward0", "from", (low, high)
    d = self._array.dtype
    if isinstance(low, float) or isinstance(high, float):
        raise TypeError("random_(): a bound must be int, not float")  # a guard says more
    if low is None and high is not None:
        low = 0
    return fill(self, f"_random_{node}", lambda n, _: sample(kernels.random, generator, n, d, low, high), (), overload,
                args, generator)


def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of an exponential distribution of rate `lambd`.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).exponential_(lambd=2)
    tensor([1.7542, 0.6152, 0.3075])
    """
    d = self._array.dtype
    return fill(self, "_exponential_ExponentialBackward0",
                 lambda n, _: sample(kernels.exponential, generator, n, d, float(lambd)), (), "default", (lambd,),
                 generator)


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a geometric distribution: trials of probability `p` up to the first success.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(5).geometric_(0.25)
    tensor([1., 2., 3., 1., 2.])
    """
    d = self._array.dtype
    return fill(self, "_geometric_GeometricBackward0",
                 lambda n, _: sample(kernels.geometric, generator, n, float(p), d), (), "default", (p,), generator)


def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a Cauchy distribution.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).cauchy_()
    tensor([10.5977,  0.7648, -0.1283])
    """
    d = self._array.dtype
    return fill(self, "_cauchy_CauchyBackward0",
                 lambda n, _: sample(kernels.cauchy, generator, n, d, float(median), float(sigma)), (), "default",
                 (median, sigma), generator)


def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a log-normal distribution.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(3).log_normal_()
    tensor([5.9263e+01, 1.5116e+00, 3.4819e-02])
    """
    d = self._array.dtype
    return fill(self, "_log_normal_LogNormalBackward0",
                 lambda n, _: sample(kernels.log_normal, generator, n, d, float(mean), float(std)), (), "default",
                 (mean, std), generator)


METHODS: dict[str, Any] = {
    "uniform_": uniform_, "normal_": normal_, "random_": random_, "exponential_": exponential_,
    "geometric_": geometric_, "cauchy_": cauchy_, "log_normal_": log_normal_,
}
