"""The namespace `xp` that traces optimizers' update rules into IR values.

An update rule writes to the parameter and its state in place. Here they are `ValueCell`s, and a write replaces the
IR value of a cell.
"""

from __future__ import annotations

from typing import Any

from ...ir.graph.value import Graph, Value
from ...ir.lowering.namespace import namespace_of
from .symbolic_scalars import SymbolicScalar


class ValueCell:
    """A mutable reference to an IR value, which represents a tensor that an update rule may write to."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __lt__(self, other: Any) -> ValueCell:
        return ValueCell(self.value < other)

    def __gt__(self, other: Any) -> ValueCell:
        return ValueCell(self.value > other)

    def __eq__(self, other: object) -> Any:
        return ValueCell(self.value.graph.apply("eq", self.value, other))

    __hash__ = object.__hash__


class UpdateNamespace:
    """The functions of `optim.update_rules` on cells of one dtype."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.xp = namespace_of(graph)

    def _value_of(self, x: Any, like: Any = None) -> Any:
        if isinstance(x, ValueCell):
            return x.value
        if isinstance(x, SymbolicScalar):
            assert like is not None
            return self.graph.cast(x.value, like.dtype)
        return x

    def _values(self, *operands: Any) -> list[Any]:
        like = next(x.value for x in operands if isinstance(x, ValueCell))
        return [self._value_of(x, like) for x in operands]

    def _apply(self, name: str, *operands: Any) -> ValueCell:
        return ValueCell(self.graph.apply(name, *self._values(*operands)))

    def _write(self, x: ValueCell, result: ValueCell) -> ValueCell:
        x.value = result.value
        return x

    def add(self, x: Any, y: Any, alpha: Any = 1) -> ValueCell:
        a, b, factor = self._values(x, y, alpha)
        return ValueCell(a + (b if isinstance(alpha, int) and alpha == 1 else b * factor))

    def add_(self, x: ValueCell, y: Any, alpha: Any = 1) -> ValueCell:
        return self._write(x, self.add(x, y, alpha))

    def addcmul(self, x: Any, a: Any, b: Any, value: Any) -> ValueCell:
        x, a, b, factor = self._values(x, a, b, value)
        return ValueCell(x + a * factor * b)

    def addcmul_(self, x: ValueCell, a: Any, b: Any, value: Any) -> ValueCell:
        return self._write(x, self.addcmul(x, a, b, value))

    def addcdiv_(self, x: ValueCell, a: Any, b: Any, value: Any) -> ValueCell:
        old, a, b, factor = self._values(x, a, b, value)
        return self._write(x, ValueCell(old + a * factor / b))

    def lerp_(self, x: ValueCell, y: Any, weight: Any) -> ValueCell:
        concrete = weight.concrete if isinstance(weight, SymbolicScalar) else weight
        old, end, factor = self._values(x, y, weight)
        span = end - old
        if concrete < 0.5:
            return self._write(x, ValueCell(old + span * factor))
        [rest] = self._values(1 - weight, x)[:1]
        return self._write(x, ValueCell(end - span * rest))

    def copy_(self, x: ValueCell, y: Any) -> ValueCell:
        x.value = self._value_of(y)
        return x

    def neg(self, x: Any) -> ValueCell:
        return self._apply("neg", x)

    def abs(self, x: Any) -> ValueCell:
        return self._apply("abs", x)

    def sqrt(self, x: Any) -> ValueCell:
        return self._apply("sqrt", x)

    def mul(self, x: Any, y: Any) -> ValueCell:
        return self._apply("mul", x, y)

    def sub(self, x: Any, y: Any) -> ValueCell:
        return self._apply("sub", x, y)

    def div(self, x: Any, y: Any) -> ValueCell:
        return self._apply("div", x, y)

    def sign(self, x: Any) -> ValueCell:
        return ValueCell(self.xp.sign(self._value_of(x)))

    def maximum(self, x: Any, y: Any) -> ValueCell:
        return self._apply("maximum", x, y)

    def where(self, condition: Any, x: Any, y: Any) -> ValueCell:
        like = next(v.value for v in (x, y) if isinstance(v, ValueCell))
        return ValueCell(self.graph.select(self._value_of(condition), self._value_of(x, like), self._value_of(y, like)))

    def mul_(self, x: ValueCell, y: Any) -> ValueCell:
        return self._write(x, self.mul(x, y))

    def div_(self, x: ValueCell, y: Any) -> ValueCell:
        return self._write(x, self.div(x, y))

    def maximum_(self, x: ValueCell, y: Any) -> ValueCell:
        return self._write(x, self.maximum(x, y))

    def clamp_(self, x: ValueCell, low: Any, high: Any) -> ValueCell:
        return self._write(x, self._apply("minimum", self._apply("maximum", x, low), high))
