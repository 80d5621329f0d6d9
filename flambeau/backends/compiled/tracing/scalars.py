"""Python numbers that may be others at the next call: formulas are traced with `Scalar`s in their place.

A scalar has today's value, and the code that computes it from the parameters. Arithmetic makes new ones; whatever a
formula asks of one (`exponent == 2`, `if weight_decay:`) is answered by today's value and noted as a *guard*: the trace
serves those calls whose numbers give the same answers.

>>> numbers = Numbers(("lr", "decay"))
>>> lr, decay = numbers.scalar("lr", 0.1), numbers.scalar("decay", 0.5)
>>> factor = 1 - lr * decay
>>> factor.value, bool(decay != 0)
(0.95, True)
>>> numbers.keep(factor, float)
0
>>> holds, values = numbers.functions()
>>> holds(0.2, 0.5), holds(0.2, 0.0), values(0.2, 0.5)
(True, False, (0.9,))
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

PLAIN = (bool, int, float)


class Numbers:
    """The scalars of one trace: the parameters they come from, the guards, and those that the code asks for.

    Args:
        names: the parameters, in the order in which the made functions take them.

    Attributes:
        kept: the scalars that kernels take, with what they are taken as.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.kept: list[tuple[str, Any]] = []
        self._guards: dict[str, Any] = {}
        self._constants: dict[str, Any] = {}

    def scalar(self, name: str, value: Any) -> Scalar:
        """The parameter of this name, whose value now is `value`."""
        return Scalar(self, name, value)

    def literal(self, value: Any) -> str:
        """Code for a number that does not change."""
        for name, known in self._constants.items():
            if known is value:
                return name
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def guard(self, code: str, answer: Any) -> Any:
        """Note that `code` gave this answer, which is returned."""
        self._guards.setdefault(code, answer)
        return answer

    def keep(self, scalar: Scalar, taken_as: Any) -> int:
        """Have a scalar computed at every call: its position among those."""
        entry = (scalar.code, taken_as)
        if entry not in self.kept:
            self.kept.append(entry)
        return self.kept.index(entry)

    def functions(self) -> tuple[Callable[..., bool] | None, Callable[..., tuple[Any, ...]]]:
        """Of the parameters: whether the guards hold (None where there are none), and what was kept."""
        tests = [f"({code}) == {self.literal(answer)}" if answer == answer else f"({code}) != ({code})"  # nan
                 for code, answer in self._guards.items()]
        values = "".join(f"{code}, " for code, _ in self.kept)
        return (self._compiled(" and ".join(tests)) if tests else None), self._compiled(f"({values})")

    def _compiled(self, code: str) -> Callable[..., Any]:
        made: Callable[..., Any] = eval(f"lambda {', '.join(self.names)}: {code}", dict(self._constants))
        return made


def _arithmetic(sign: str, function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    def forward(self: Scalar, other: Any) -> Any:
        if type(other) is Scalar:
            return Scalar(self.numbers, f"({self.code} {sign} {other.code})", function(self.value, other.value))
        if type(other) in PLAIN:
            return Scalar(self.numbers, f"({self.code} {sign} {self.numbers.literal(other)})",
                          function(self.value, other))
        return NotImplemented

    def backward(self: Scalar, other: Any) -> Any:
        if type(other) in PLAIN:
            return Scalar(self.numbers, f"({self.numbers.literal(other)} {sign} {self.code})",
                          function(other, self.value))
        return NotImplemented

    return forward, backward


def _comparison(sign: str, function: Callable[[Any, Any], Any]) -> Any:
    def compare(self: Scalar, other: Any) -> Any:
        if type(other) is Scalar:
            code, other = other.code, other.value
        elif other is None or isinstance(other, str):
            return function(self.value, other)
        elif type(other) in PLAIN:
            code = self.numbers.literal(other)
        else:
            return NotImplemented
        return self.numbers.guard(f"{self.code} {sign} {code}", function(self.value, other))

    return compare


class Scalar:
    """A number in a trace: its value now, and the code that computes it."""

    __slots__ = ("code", "numbers", "value")

    def __init__(self, numbers: Numbers, code: str, value: Any) -> None:
        self.numbers, self.code, self.value = numbers, code, value

    def __repr__(self) -> str:
        return f"<scalar {self.code}: {self.value}>"

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    __add__, __radd__ = _arithmetic("+", operator.add)
    __sub__, __rsub__ = _arithmetic("-", operator.sub)
    __mul__, __rmul__ = _arithmetic("*", operator.mul)
    __truediv__, __rtruediv__ = _arithmetic("/", operator.truediv)
    __floordiv__, __rfloordiv__ = _arithmetic("//", operator.floordiv)
    __mod__, __rmod__ = _arithmetic("%", operator.mod)
    __pow__, __rpow__ = _arithmetic("**", operator.pow)

    __eq__ = _comparison("==", operator.eq)
    __ne__ = _comparison("!=", operator.ne)
    __lt__ = _comparison("<", operator.lt)
    __le__ = _comparison("<=", operator.le)
    __gt__ = _comparison(">", operator.gt)
    __ge__ = _comparison(">=", operator.ge)
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Scalar:
        return Scalar(self.numbers, f"(-{self.code})", -self.value)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return Scalar(self.numbers, f"abs({self.code})", abs(self.value))

    def __bool__(self) -> bool:
        return bool(self.numbers.guard(f"bool({self.code})", bool(self.value)))

    def fixed(self) -> Any:
        """The value itself, which becomes a constant: the trace serves no other."""
        return self.numbers.guard(self.code, self.value)

    def __float__(self) -> float:
        return float(self.fixed())

    def __int__(self) -> int:
        return int(self.fixed())

    def __index__(self) -> int:
        return operator.index(self.fixed())


__all__ = ["PLAIN", "Numbers", "Scalar"]
