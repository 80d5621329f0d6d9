"""Symbolic integers: sizes that planning computes with, for which one plan may serve many values.

A plan is made for one combination of sizes, its *sample*, while `SymbolicInteger`s stand for what depends on them. Each
knows its value for every combination of a range, and the expression that computes it. A comparison is decided by the
sample; the combinations for which it has another outcome are dropped from those that the plan serves. So is what needs
the number itself: a loop, an index, a text. What is left afterwards is exact. Estimates (floats, and what `typical`
returns) are those of the sample: they may only choose between ways that are right for all sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .number_protocol import ComparedNumber

#: an operation and its operands; ("size", i): size number i; an integer
Expression = Any


class PlannedSizes:
    """The combinations of sizes for which a plan is made.

    Args:
        columns: by size, its value in each combination.
        sample: the number of the combination that decides.
        exact: whether estimates that the order of additions depends on are those of each combination (`estimate`).

    Attributes:
        served: by combination, whether the plan serves it.
    """

    def __init__(self, columns: Sequence[np.ndarray], sample: int, exact: bool = False) -> None:
        self.columns, self.sample, self.exact = columns, sample, exact
        self.served = np.ones(len(columns[0]), bool)

    def symbols(self) -> list[Any]:
        """The sizes as symbolic integers.

        >>> import numpy as np
        >>> sizes = PlannedSizes([np.arange(1, 9)], 3)
        >>> (n,) = sizes.symbols()
        >>> n // 2 < 3, sizes.served.tolist()
        (True, [True, True, True, True, True, False, False, False])
        """
        return [_number(self, column, ("size", i)) for i, column in enumerate(self.columns)]


def _number(sizes: PlannedSizes, values: np.ndarray, expression: Expression) -> Any:
    return int(values[0]) if (values == values[0]).all() else SymbolicInteger(sizes, values, expression)


class SymbolicInteger(ComparedNumber):
    """An integer that depends on sizes.

    Args:
        sizes: the combinations.
        values: its value for each.
        expression: what computes it.
    """

    __slots__ = ("_hash", "expression", "sizes", "values")

    def __init__(self, sizes: PlannedSizes, values: np.ndarray, expression: Expression) -> None:
        self.sizes, self.values, self.expression = sizes, values, expression
        self._hash: int | None = None

    @property
    def sample(self) -> int:
        """The value for the sample."""
        return int(self.values[self.sizes.sample])

    def _compare(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, float):
            return function(self.sample, other)
        right = _values(other)
        if right is None:
            return NotImplemented
        outcomes = function(self.values, right)
        outcome = bool(outcomes[self.sizes.sample])
        self.sizes.served &= outcomes == outcome
        return outcome

    def __eq__(self, other: object) -> Any:
        if type(other) is SymbolicInteger and other.sizes is not self.sizes:
            return False  # in a cache: what was decided for another sample
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((id(self.sizes), self.values.tobytes()))
        return self._hash

    def __bool__(self) -> bool:
        return bool(self._compare(0, operator.ne))

    def __index__(self) -> int:
        self.sizes.served &= self.values == self.sample
        return self.sample

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.sample)

    def __repr__(self) -> str:
        return repr(self.__index__())

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec)

    def __reduce__(self) -> Any:
        return int, (self.__index__(),)

    def __neg__(self) -> Any:
        return _number(self.sizes, -self.values, ("sub", 0, self.expression))

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __pow__(self, power: int) -> Any:
        result: Any = 1
        for _ in range(power):
            result = result * self
        return result

    def __truediv__(self, other: Any) -> float:
        return self.sample / float(other)

    def __rtruediv__(self, other: Any) -> float:
        return float(other) / self.sample


def _values(x: Any) -> Any:
    """The values of an integer, for each combination or for all; None for anything else."""
    if type(x) is SymbolicInteger:
        return x.values
    return int(x) if isinstance(x, (int, np.integer)) else None


def _binary(name: str, reverse: bool) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def method(self: SymbolicInteger, other: Any) -> Any:
        if isinstance(other, float):
            return function(other, self.sample) if reverse else function(self.sample, other)
        right = _values(other)
        if right is None:
            return NotImplemented
        theirs = other.expression if type(other) is SymbolicInteger else right
        left, expression = self.values, (name, self.expression, theirs)
        if reverse:
            left, right, expression = right, left, (name, theirs, self.expression)
        if name in ("floordiv", "mod"):
            possible = np.broadcast_to(np.not_equal(right, 0), self.values.shape)
            if not possible[self.sizes.sample]:
                raise ZeroDivisionError("a symbolic integer is divided by zero")
            self.sizes.served &= possible
            right = np.where(possible, right, 1)
        return _number(self.sizes, function(left, right), expression)

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    setattr(SymbolicInteger, f"__{_name}__", _binary(_name, False))
    setattr(SymbolicInteger, f"__r{_name}__", _binary(_name, True))


def _chosen(name: str, function: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]) -> Any:
    def choose(x: Any, y: Any) -> Any:
        if type(x) is not SymbolicInteger:
            x, y = y, x
        if type(x) is not SymbolicInteger:
            return plain(x, y)
        theirs = y.expression if type(y) is SymbolicInteger else int(y)
        return _number(x.sizes, function(x.values, _values(y)), (name, x.expression, theirs))

    return choose


#: the lesser and the greater of two integers: not a decision, unlike a comparison
lesser = _chosen("min", np.minimum, min)
greater = _chosen("max", np.maximum, max)


def largest(x: Any) -> int:
    """A number, or the largest value of a symbolic one."""
    return int(x.values.max()) if type(x) is SymbolicInteger else int(x)


def typical(x: Any) -> Any:
    """A number, or the sample's value of a symbolic one: for estimates."""
    return x.sample if type(x) is SymbolicInteger else x


def is_exact(x: Any) -> bool:
    """Whether a number is symbolic, and estimates are those of each combination."""
    return type(x) is SymbolicInteger and x.sizes.exact


def estimate(x: Any) -> Any:
    """`typical`; the number itself where estimates are those of each combination."""
    return x if is_exact(x) else typical(x)


def is_symbolic(x: Any) -> bool:
    """Whether a number depends on sizes."""
    return type(x) is SymbolicInteger


__all__ = ["Expression", "PlannedSizes", "SymbolicInteger", "estimate", "greater", "is_exact", "is_symbolic", "largest",
           "lesser", "typical"]
