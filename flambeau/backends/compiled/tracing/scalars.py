"""Symbolic scalars: Python numbers among the parameters of a traced function, which may change between calls.

A `Scalar` has its current value and the Python code that computes it from the parameters. Arithmetic creates new
scalars. A comparison or a conversion to bool (`exponent == 2`, `if weight_decay:`) returns the current result and adds
a guard: the trace serves only calls whose numbers give the same result.

>>> parameters = ScalarParameters(("lr", "decay"))
>>> lr, decay = parameters.scalar("lr", 0.1), parameters.scalar("decay", 0.5)
>>> factor = 1 - lr * decay
>>> factor.value, bool(decay != 0)
(0.95, True)
>>> parameters.add_runtime_scalar(factor, float)
0
>>> holds, values = parameters.functions()
>>> holds(0.2, 0.5), holds(0.2, 0.0), values(0.2, 0.5)
(True, False, (0.9,))
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

SCALAR_TYPES = (bool, int, float)


class ScalarParameters:
    """The scalars of one trace: parameters, guards, and the runtime scalars that kernels take.

    Args:
        names: the parameters, in the order of the arguments of the generated functions.

    Attributes:
        runtime_scalars: pairs of the code of a scalar that is passed to kernels and its dtype.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.runtime_scalars: list[tuple[str, Any]] = []
        self._guards: dict[str, Any] = {}
        self._constants: dict[str, Any] = {}

    def scalar(self, name: str, value: Any) -> Scalar:
        """The parameter of this name, whose current value is `value`."""
        return Scalar(self, name, value)

    def literal(self, value: Any) -> str:
        """The name of a constant in generated code."""
        for name, known in self._constants.items():
            if known is value:
                return name
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def guard(self, code: str, answer: Any) -> Any:
        """Add a guard that `code` gives this answer; return the answer."""
        self._guards.setdefault(code, answer)
        return answer

    def add_runtime_scalar(self, scalar: Scalar, dtype: Any) -> int:
        """Pass a scalar to kernels: its index among the runtime scalars."""
        entry = (scalar.code, dtype)
        if entry not in self.runtime_scalars:
            self.runtime_scalars.append(entry)
        return self.runtime_scalars.index(entry)

    def functions(self) -> tuple[Callable[..., bool] | None, Callable[..., tuple[Any, ...]]]:
        """Functions of the parameters: whether the guards hold (None: always), and the runtime scalars."""
        conditions = [f"({code}) == {self.literal(answer)}" if answer == answer else f"({code}) != ({code})"  # nan
                 for code, answer in self._guards.items()]
        values = "".join(f"{code}, " for code, _ in self.runtime_scalars)
        return (self._compiled(" and ".join(conditions)) if conditions else None), self._compiled(f"({values})")

    def _compiled(self, code: str) -> Callable[..., Any]:
        made: Callable[..., Any] = eval(f"lambda {', '.join(self.names)}: {code}", dict(self._constants))
        return made


def _arithmetic(sign: str, function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    def forward(self: Scalar, other: Any) -> Any:
        if type(other) is Scalar:
            return Scalar(self.parameters, f"({self.code} {sign} {other.code})", function(self.value, other.value))
        if type(other) in SCALAR_TYPES:
            return Scalar(self.parameters, f"({self.code} {sign} {self.parameters.literal(other)})",
                          function(self.value, other))
        return NotImplemented

    def backward(self: Scalar, other: Any) -> Any:
        if type(other) in SCALAR_TYPES:
            return Scalar(self.parameters, f"({self.parameters.literal(other)} {sign} {self.code})",
                          function(other, self.value))
        return NotImplemented

    return forward, backward


def _comparison(sign: str, function: Callable[[Any, Any], Any]) -> Any:
    def compare(self: Scalar, other: Any) -> Any:
        if type(other) is Scalar:
            code, other = other.code, other.value
        elif other is None or isinstance(other, str):
            return function(self.value, other)
        elif type(other) in SCALAR_TYPES:
            code = self.parameters.literal(other)
        else:
            return NotImplemented
        return self.parameters.guard(f"{self.code} {sign} {code}", function(self.value, other))

    return compare


class Scalar:
    """A number in a trace: its current value, and the code that computes it."""

    __slots__ = ("code", "parameters", "value")

    def __init__(self, parameters: ScalarParameters, code: str, value: Any) -> None:
        self.parameters, self.code, self.value = parameters, code, value

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
        return Scalar(self.parameters, f"(-{self.code})", -self.value)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return Scalar(self.parameters, f"abs({self.code})", abs(self.value))

    def __bool__(self) -> bool:
        return bool(self.parameters.guard(f"bool({self.code})", bool(self.value)))

    def specialized(self) -> Any:
        """The current value as a constant, guarded: the trace serves no other value."""
        return self.parameters.guard(self.code, self.value)

    def __float__(self) -> float:
        return float(self.specialized())

    def __int__(self) -> int:
        return int(self.specialized())

    def __index__(self) -> int:
        return operator.index(self.specialized())


__all__ = ["SCALAR_TYPES", "Scalar", "ScalarParameters"]
