"""Numbers of an export that depend on dynamic sizes.

A program is traced for several sizes at once: a number has one value in each lane, the first of which is that of the
example. What Python decides by such a number has to be the same in all lanes, otherwise the graph would be valid for
some sizes only, and the export is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from ...environment.symbolic import SymFloat, SymInt
from ...shapes import Size
from .expressions import OPERATIONS, Expression


class SizesDisagree(RuntimeError):
    """A decision of the program, or the shape of a result, depends on a dynamic size.

    Args:
        what: what depends on it.
        roots: the symbols of the number.
    """

    def __init__(self, what: str, roots: Iterable[str] = ()) -> None:
        super().__init__(what)
        self.what, self.roots = what, tuple(roots)


class _Number:
    """A number with a value in each lane, and a node.

    Args:
        trace: the trace that it belongs to; it has `number(...)`, `number_node(...)`.
        lanes: its values.
        expression: of the symbols; None where it is no polynomial.
        node: its node; None where it is made when it is needed.
    """

    def __init__(self, trace: Any, lanes: tuple[Any, ...], expression: Expression | None, node: Any = None) -> None:
        self.trace, self.lanes, self.expression, self._node = trace, lanes, expression, node

    @property
    def hint(self) -> Any:
        """Its value in the example."""
        return self.lanes[0]

    def _decided(self, what: str) -> Any:
        """The value that all lanes share.

        Raises:
            SizesDisagree: they share none.
        """
        if any(x != self.lanes[0] for x in self.lanes):
            raise SizesDisagree(f"{what} depends on the dynamic size {self}")
        return self.lanes[0]

    def __bool__(self) -> bool:
        values = {bool(x) for x in self.lanes}
        if len(values) > 1:
            raise SizesDisagree(f"a condition depends on the dynamic size {self}")
        return values.pop()

    def __index__(self) -> int:
        return operator.index(self._decided("a number of Python (of a loop, a list or an index)"))

    def __int__(self) -> int:
        return int(self._decided("a number of Python"))

    def __float__(self) -> float:
        return float(self._decided("a number of Python"))

    def __str__(self) -> str:
        return "?" if self.expression is None else str(self.expression)

    def __repr__(self) -> str:
        return str(self)

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: non-nested {type(self).__mro__[1].__name__}")

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def _compare(self, other: Any, function: Any, sign: str) -> Any:
        if not isinstance(other, (int, float, _Number)):
            return NotImplemented
        answers = {function(a, b) for a, b in zip(self.lanes, _lanes(other, len(self.lanes)), strict=True)}
        if len(answers) > 1:
            raise SizesDisagree(f"a condition depends on a dynamic size: {self} {sign} {other}")
        return answers.pop()

    def __eq__(self, other: object) -> Any:
        return self._compare(other, operator.eq, "==")

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne, "!=")

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt, "<")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le, "<=")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt, ">")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge, ">=")

    def _combine(self, other: Any, name: str, swapped: bool = False) -> Any:
        if not isinstance(other, (int, float, _Number)) or isinstance(other, bool):
            return NotImplemented
        left, right = (other, self) if swapped else (self, other)
        function = getattr(operator, name)
        count = len(self.lanes)
        lanes = tuple(function(a, b) for a, b in zip(_lanes(left, count), _lanes(right, count), strict=True))
        a, b = _expression(left), _expression(right)
        expression = OPERATIONS[name](a, b) if a is not None and b is not None and name in OPERATIONS else None
        return self.trace.combined(function, left, right, lanes, expression)

    def __neg__(self) -> Any:
        return self.trace.combined(operator.neg, self, None, tuple(-x for x in self.lanes), None if (
            self.expression is None) else -self.expression)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if all(x >= 0 for x in self.lanes) else -self


def _operator(name: str, swapped: bool) -> Any:
    def method(self: _Number, other: Any) -> Any:
        return self._combine(other, name, swapped)

    method.__name__ = f"__{'r' if swapped else ''}{name}__"
    return method


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow"):
    setattr(_Number, f"__{_name}__", _operator(_name, False))
    setattr(_Number, f"__r{_name}__", _operator(_name, True))


class SymbolicInt(_Number, SymInt):
    """An integer that depends on dynamic sizes."""

    def __floor__(self) -> Any:
        return self

    __ceil__ = __trunc__ = __floor__

    def __round__(self, digits: int | None = None) -> Any:
        return self


class SymbolicFloat(_Number, SymFloat):
    """A float that depends on dynamic sizes."""


def _lanes(value: Any, count: int) -> tuple[Any, ...]:
    return value.lanes if isinstance(value, _Number) else (value,) * count


def _expression(value: Any) -> Any:
    if isinstance(value, _Number):
        return value.expression
    return value if isinstance(value, int) else None


def in_lane(value: Any, lane: int) -> Any:
    """A number in a lane; another value as it is."""
    return value.lanes[lane] if isinstance(value, _Number) else value


def is_symbolic(value: Any) -> bool:
    """Whether a value is a number that depends on dynamic sizes."""
    return isinstance(value, _Number)


class SymbolicSize(Size):
    """A shape with dynamic sizes."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Any:
        return tuple.__new__(cls, tuple(sizes))

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return SymbolicSize(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        return SymbolicSize(tuple(self) + tuple(other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return SymbolicSize(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def numel(self) -> Any:
        """The number of elements."""
        count: Any = 1
        for size in self:
            count = count * size
        return count


__all__ = ["SizesDisagree", "SymbolicFloat", "SymbolicInt", "SymbolicSize", "in_lane", "is_symbolic"]
