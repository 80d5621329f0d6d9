"""Constraints of single numbers."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .base import Constraint


class _Bounded(Constraint):
    """Numbers between bounds, which the representation lists."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__[1:]}({bounds})"


class _LowerBounded(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _UpperBounded(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _BothBounded(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _IntegerInterval(_BothBounded):
    """Integers from `lower_bound` to `upper_bound`, both included.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.integer_interval(0, 2).check(torch.tensor([1., 3.]))
    tensor([ True, False])
    """

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_UpperBounded):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_LowerBounded):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # false for NaN


class _GreaterThan(_LowerBounded):
    """Numbers above `lower_bound`.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.greater_than(0.).check(torch.tensor([0., 1.]))
    tensor([False,  True])
    """

    def check(self, value: Tensor) -> Tensor:
        valid: Tensor = self.lower_bound < value
        return valid


class _GreaterThanEq(_LowerBounded):
    """Numbers of at least `lower_bound`.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.greater_than_eq(0.).check(torch.tensor([0., -1.]))
    tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        valid: Tensor = self.lower_bound <= value
        return valid


class _LessThan(_UpperBounded):
    """Numbers below `upper_bound`.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.less_than(0.).check(torch.tensor([0., -1.]))
    tensor([False,  True])
    """

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_BothBounded):
    """Numbers from `lower_bound` to `upper_bound`, both included.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.interval(0., 1.).check(torch.tensor([1., 2.]))
    tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        valid: Tensor = (self.lower_bound <= value) & (value <= self.upper_bound)
        return valid


class _HalfOpenInterval(_BothBounded):
    """Numbers from `lower_bound` to below `upper_bound`.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.half_open_interval(0., 1.).check(torch.tensor([0., 1.]))
    tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        valid: Tensor = (self.lower_bound <= value) & (value < self.upper_bound)
        return valid
