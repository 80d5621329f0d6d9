"""Numbers that a run may change from call to call without being written down anew: hyperparameters and step counts.

A `Symbol` is a number that remembers how it was made. It calculates as a float does, and what it is when a program
runs is worked out by the program: a scheduler may change a learning rate at any time. A comparison has to be decided
while the run is written down; its outcome becomes a condition.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.graph.value import Value

FLOAT64 = np.dtype(np.float64)


class SymbolicScalar:
    """A number of a run, and the value that stands for it in the graph.

    Attributes:
        concrete: what it was in this run.
        source: where it is looked up (container, key), if it is a hyperparameter itself.
    """

    __slots__ = ("_make", "_value", "concrete", "source", "tracer")

    def __init__(self, tracer: Any, concrete: float, make: Callable[[], Value],
                 source: tuple[Any, Any] | None = None) -> None:
        self.tracer, self.concrete, self.source = tracer, concrete, source
        self._make: Callable[[], Value] | None = make
        self._value: Value | None = None

    @property
    def value(self) -> Value:
        """A number in float64."""
        if self._value is None:
            assert self._make is not None
            self._value = self._make()
        return self._value

    def _apply(self, name: str, calculate: Callable[..., Any], *operands: Any) -> SymbolicScalar:
        given = [x.value if isinstance(x, SymbolicScalar) else x for x in operands]
        numbers = [x.concrete if isinstance(x, SymbolicScalar) else x for x in operands]
        return SymbolicScalar(self.tracer, calculate(*numbers), lambda: self.tracer.graph.apply(name, *given))

    def _guard_comparison(self, compare: Callable[[Any, Any], bool], other: Any) -> bool:
        against = other.concrete if isinstance(other, SymbolicScalar) else other
        outcome = bool(compare(self.concrete, against))
        if self.source is None or isinstance(other, SymbolicScalar):
            given = other.value if isinstance(other, SymbolicScalar) else other
            self.tracer.guard_on_value(self.tracer.graph.apply(compare.__name__, self.value, given), outcome)
        else:
            self.tracer.guard_on_scalar(self.source, compare, other, outcome)
        return outcome

    def __add__(self, other: Any) -> SymbolicScalar:
        return self._apply("add", operator.add, self, other)

    def __radd__(self, other: Any) -> SymbolicScalar:
        return self._apply("add", operator.add, other, self)

    def __sub__(self, other: Any) -> SymbolicScalar:
        return self._apply("sub", operator.sub, self, other)

    def __rsub__(self, other: Any) -> SymbolicScalar:
        return self._apply("sub", operator.sub, other, self)

    def __mul__(self, other: Any) -> SymbolicScalar:
        return self._apply("mul", operator.mul, self, other)

    def __rmul__(self, other: Any) -> SymbolicScalar:
        return self._apply("mul", operator.mul, other, self)

    def __truediv__(self, other: Any) -> SymbolicScalar:
        return self._apply("div", operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> SymbolicScalar:
        return self._apply("div", operator.truediv, other, self)

    def __pow__(self, other: Any) -> SymbolicScalar:
        if not isinstance(other, SymbolicScalar) and other == 0.5:
            return SymbolicScalar(self.tracer, self.concrete ** 0.5,
                                  lambda: self.tracer.graph.apply("sqrt", self.value))
        return self._apply("pow", operator.pow, self, other)

    def __rpow__(self, other: Any) -> SymbolicScalar:
        return self._apply("pow", operator.pow, other, self)

    def __neg__(self) -> SymbolicScalar:
        return self._apply("neg", operator.neg, self)

    def __pos__(self) -> SymbolicScalar:
        return self

    def __eq__(self, other: object) -> bool:
        return self._guard_comparison(operator.eq, other)

    def __ne__(self, other: object) -> bool:
        return self._guard_comparison(operator.ne, other)

    def __lt__(self, other: Any) -> bool:
        return self._guard_comparison(operator.lt, other)

    def __le__(self, other: Any) -> bool:
        return self._guard_comparison(operator.le, other)

    def __gt__(self, other: Any) -> bool:
        return self._guard_comparison(operator.gt, other)

    def __ge__(self, other: Any) -> bool:
        return self._guard_comparison(operator.ge, other)

    def __hash__(self) -> int:
        return hash(self.concrete)

    def __bool__(self) -> bool:
        return self._guard_comparison(operator.ne, 0)

    def __float__(self) -> float:
        self.tracer.graph_break("a hyperparameter that is handed to the interpreter")
        return float(self.concrete)

    __index__ = None


class SymbolicParamGroup(dict[str, Any]):
    """An optimizer's group whose numbers are symbols."""

    def __init__(self, tracer: Any, group: dict[str, Any]) -> None:
        super().__init__(group)
        self._tracer, self._group = tracer, group

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if type(value) in (float, int):
            return self._tracer.number(self._group, key, None, value)
        if type(value) is tuple and value and all(type(x) in (float, int) for x in value):
            return tuple(self._tracer.number(self._group, key, i, x) for i, x in enumerate(value))
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self._tracer.graph_break(f"an optimizer that changes its option {key}")
        super().__setitem__(key, value)
        self._group[key] = concrete(value)


def concrete(value: Any) -> Any:
    """The number that a symbol was; anything else itself."""
    return value.concrete if isinstance(value, SymbolicScalar) else value


__all__ = ["SymbolicParamGroup", "SymbolicScalar", "concrete"]
