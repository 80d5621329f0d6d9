"""The base class of distributions: shapes, validation of parameters and values, expansion."""

from __future__ import annotations

import warnings
from typing import Any

from .._tensor import Tensor, no_grad
from .._tensor import functions as fn
from ..shapes import Size
from . import constraints
from .constraints import Constraint
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution, or a batch of them.

    A sample has the shape `sample_shape + batch_shape + event_shape`: draws, distributions with parameters of their
    own, and the dimensions of one event.

    Args:
        batch_shape: the shape of the batch of distributions.
        event_shape: the shape of one event.
        validate_args: whether parameters and values are validated. Default: True, unless Python runs with -O.

    Raises:
        ValueError: a parameter violates its constraint.

    >>> import flambeau as torch
    >>> d = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    >>> tuple(d.batch_shape), tuple(d.event_shape), tuple(d.sample((3,)).shape)
    ((2,), (), (3, 2))
    """

    #: whether `rsample` is defined: samples that can be differentiated by the parameters
    has_rsample: Any = False
    #: whether `enumerate_support` is defined
    has_enumerate_support: Any = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions without the argument `validate_args` validate."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = Size(), event_shape: Any = Size(),
                 validate_args: bool | None = None) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            declared: dict[str, Constraint] = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                          "initialize the distribution with `validate_args=False` to turn off validation.",
                          stacklevel=3)
            return
        for name, constraint in declared.items():
            if constraints.is_dependent(constraint) or (
                    name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property)):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """A distribution of a larger batch shape, whose parameters are expanded views."""
        raise NotImplementedError

    def _expand_parameters(self, owner: type, batch_shape: Any, instance: Any, *names: str) -> Any:
        """The `expand` of `owner`: a new distribution, whose parameters in `names` are expanded if they are stored."""
        new = self._get_checked_instance(owner, instance)
        batch_shape = Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape))
        self._initialize_expanded(new, batch_shape)
        return new

    def _initialize_expanded(self, new: Any, batch_shape: Any) -> None:
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """The constraint of each parameter, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """Samples without gradient, `sample_shape + batch_shape + event_shape`."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        """Samples that can be differentiated by the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`; deprecated."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample that is at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The quantiles of probabilities: the inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along the first dimension.

        Args:
            expand: whether the result has the batch shape; otherwise its batch dimensions have size 1.
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        result: Tensor = fn.exp(self.entropy())
        return result

    def _extended_shape(self, sample_shape: Any = Size()) -> Any:
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        return Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raise an error unless `log_prob` is defined at `value`."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        actual, event_shape = value.size(), self._event_shape
        if actual[len(actual) - len(event_shape):] != event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {actual} vs {event_shape}.")
        expected = self._batch_shape + event_shape
        if any(i != j and i != 1 and j != 1
               for i, j in zip(reversed(actual), reversed(expected), strict=False)):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                          "distribution with `validate_args=False` to turn off validation.", stacklevel=3)
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}")

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """`_instance`, or an empty distribution of this class, unless it has a constructor of its own."""
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method.")
        return self.__new__(type(self))

    def __repr__(self) -> str:
        stored = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        listed = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}"
                           for name, value in stored.items())
        return f"{type(self).__name__}({listed})"
