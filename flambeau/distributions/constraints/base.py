"""The base class of constraints, and the placeholder of those that depend on other parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: whether the set is discrete.
        event_dim: the number of dimensions of one event.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.positive.check(torch.tensor([1., -1.]))
    tensor([ True, False])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """A boolean for each event of `value`: whether it lies in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}()"


class _Dependent(Constraint):
    """The placeholder for a set that depends on other parameters; it cannot be checked.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.dependent(event_dim=1).event_dim
    1
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> Any:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> Any:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Any:
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, x: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other parameters, so that it cannot be checked.

    >>> import flambeau as torch
    >>> constraints = torch.distributions.constraints
    >>> constraints.is_dependent(constraints.dependent), constraints.is_dependent(constraints.real)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that is a constraint of instances; on the class it stands for a dependent constraint.

    Args:
        fn: the function of an instance; a decorator with arguments if it is not given.
        is_discrete, event_dim: of the constraint, if they do not depend on the instance.

    >>> import flambeau as torch
    >>> class Ray:
    ...     @torch.distributions.constraints.dependent_property(event_dim=0)
    ...     def support(self):
    ...         return torch.distributions.constraints.greater_than(3.)
    >>> Ray().support, Ray.support.event_dim
    (GreaterThan(lower_bound=3.0), 0)
    """

    def __init__(self, fn: Callable[[Any], Any] | None = None, *, is_discrete: Any = NotImplemented,
                 event_dim: Any = NotImplemented) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> Any:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)
