"""Symbolic scalars: hyperparameters and step counts of optimizers, which are inputs of a program and not constants.

A `SymbolicScalar` has a concrete value in this call and an IR value that computes it in the program, so a scheduler may
change a learning rate without a recompile. A comparison is decided while tracing; its outcome becomes a guard.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.graph.value import Value

FLOAT64 = np.dtype(np.float64)


class SymbolicScalar:
    """A number with a concrete value, and an IR value that is made when first used.

    Attributes:
        concrete: the number in this call.
        source: (param group, (key, index)) of a hyperparameter; None for a computed number.
    """

    __slots__ = ("_make", "_value", "concrete", "source", "tracer")

    def __init__(self, tracer: Any, concrete: float, make: Callable[[], Value],
                 source: tuple[Any, Any] | None = None) -> None:
        self.tracer, self.concrete, self.source = tracer, concrete, source
        self._make: Callable[[], Value] | None = make
        self._value: Value | None = None

    @property
    def value(self) -> Value:
        """The IR value, of float64."""
        if self._value is None:
            assert self._make is not None
            self._value = self._make()
        return self._value

    def _apply(self, name: str, calculate: Callable[..., Any], *operands: Any) -> SymbolicScalar:
        values = [x.value if isinstance(x, SymbolicScalar) else x for x in operands]
        numbers = [x.concrete if isinstance(x, SymbolicScalar) else x for x in operands]
        return SymbolicScalar(self.tracer, calculate(*numbers), lambda: self.tracer.graph.apply(name, *values))

    def _guard_comparison(self, compare: Callable[[Any, Any], bool], other: Any) -> bool:
        outcome = bool(compare(self.concrete, concrete(other)))
        if self.source is None or isinstance(other, SymbolicScalar):
            operand = other.value if isinstance(other, SymbolicScalar) else other
            self.tracer.guard_on_value(self.tracer.graph.apply(compare.__name__, self.value, operand), outcome)
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
        self.tracer.graph_break("a hyperparameter is converted to a Python float")
        return float(self.concrete)

    __index__ = None


class SymbolicParamGroup(dict[str, Any]):
    """A param group whose numbers are symbolic scalars."""

    def __init__(self, tracer: Any, group: dict[str, Any]) -> None:
        super().__init__(group)
        self._tracer, self._group = tracer, group

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if type(value) in (float, int):
            return self._tracer.symbolic_scalar(self._group, key, None, value)
        if type(value) is tuple and value and all(type(x) in (float, int) for x in value):
            return tuple(self._tracer.symbolic_scalar(self._group, key, i, x) for i, x in enumerate(value))
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self._tracer.graph_break(f"an optimizer that changes its option {key}")
        super().__setitem__(key, value)
        self._group[key] = concrete(value)


def concrete(value: Any) -> Any:
    """Return the concrete number of a symbolic scalar; any other object unchanged."""
    return value.concrete if isinstance(value, SymbolicScalar) else value


__all__ = ["SymbolicParamGroup", "SymbolicScalar", "concrete"]
