"""Update rules of optimizers over values: what `xp` is while a step is written down.

A rule writes into the parameter and its state; here these are cells that hold a value, and a write gives a cell
another one.
"""

from __future__ import annotations

from typing import Any

from ...ir.graph.value import Graph, Value
from ...ir.lowering.namespace import namespace_of
from .symbolic_scalars import Symbol


class Cell:
    """What a rule may write to."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __lt__(self, other: Any) -> Cell:
        return Cell(self.value < other)

    def __gt__(self, other: Any) -> Cell:
        return Cell(self.value > other)

    def __eq__(self, other: object) -> Any:
        return Cell(self.value.graph.apply("eq", self.value, other))

    __hash__ = object.__hash__


class Updates:
    """The functions of `optim.arithmetic`, over cells of one dtype."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.xp = namespace_of(graph)

    def _of(self, x: Any, like: Any = None) -> Any:
        if isinstance(x, Cell):
            return x.value
        if isinstance(x, Symbol):
            assert like is not None
            return self.graph.cast(x.value, like.dtype)
        return x

    def _values(self, *operands: Any) -> list[Any]:
        like = next(x.value for x in operands if isinstance(x, Cell))
        return [self._of(x, like) for x in operands]

    def _apply(self, name: str, *operands: Any) -> Cell:
        return Cell(self.graph.apply(name, *self._values(*operands)))

    def _write(self, x: Cell, made: Cell) -> Cell:
        x.value = made.value
        return x

    def add(self, x: Any, y: Any, alpha: Any = 1) -> Cell:
        a, b, factor = self._values(x, y, alpha)
        return Cell(a + (b if isinstance(alpha, int) and alpha == 1 else b * factor))

    def add_(self, x: Cell, y: Any, alpha: Any = 1) -> Cell:
        return self._write(x, self.add(x, y, alpha))

    def addcmul(self, x: Any, a: Any, b: Any, value: Any) -> Cell:
        x, a, b, factor = self._values(x, a, b, value)
        return Cell(x + a * factor * b)

    def addcmul_(self, x: Cell, a: Any, b: Any, value: Any) -> Cell:
        return self._write(x, self.addcmul(x, a, b, value))

    def addcdiv_(self, x: Cell, a: Any, b: Any, value: Any) -> Cell:
        old, a, b, factor = self._values(x, a, b, value)
        return self._write(x, Cell(old + a * factor / b))

    def lerp_(self, x: Cell, y: Any, weight: Any) -> Cell:
        number = weight.concrete if isinstance(weight, Symbol) else weight
        old, end, factor = self._values(x, y, weight)
        span = end - old
        if number < 0.5:
            return self._write(x, Cell(old + span * factor))
        [rest] = self._values(1 - weight, x)[:1]
        return self._write(x, Cell(end - span * rest))

    def copy_(self, x: Cell, y: Any) -> Cell:
        x.value = self._of(y)
        return x

    def neg(self, x: Any) -> Cell:
        return self._apply("neg", x)

    def abs(self, x: Any) -> Cell:
        return self._apply("abs", x)

    def sqrt(self, x: Any) -> Cell:
        return self._apply("sqrt", x)

    def mul(self, x: Any, y: Any) -> Cell:
        return self._apply("mul", x, y)

    def sub(self, x: Any, y: Any) -> Cell:
        return self._apply("sub", x, y)

    def div(self, x: Any, y: Any) -> Cell:
        return self._apply("div", x, y)

    def sign(self, x: Any) -> Cell:
        return Cell(self.xp.sign(self._of(x)))

    def maximum(self, x: Any, y: Any) -> Cell:
        return self._apply("maximum", x, y)

    def where(self, condition: Any, x: Any, y: Any) -> Cell:
        like = next(v.value for v in (x, y) if isinstance(v, Cell))
        return Cell(self.graph.select(self._of(condition), self._of(x, like), self._of(y, like)))

    def mul_(self, x: Cell, y: Any) -> Cell:
        return self._write(x, self.mul(x, y))

    def div_(self, x: Cell, y: Any) -> Cell:
        return self._write(x, self.div(x, y))

    def sub_(self, x: Cell, y: Any) -> Cell:
        return self._write(x, self.sub(x, y))

    def sqrt_(self, x: Cell) -> Cell:
        return self._write(x, self.sqrt(x))

    def maximum_(self, x: Cell, y: Any) -> Cell:
        return self._write(x, self.maximum(x, y))

    def clamp_(self, x: Cell, low: Any, high: Any) -> Cell:
        return self._write(x, self._apply("minimum", self._apply("maximum", x, low), high))
