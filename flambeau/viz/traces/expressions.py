"""Symbolic expressions, the values on which operator declarations are evaluated for formulas.

An `Expression` supports a tensor's arithmetic and comparisons. Expressions are simplified as they are built: x · 1 is
x, and x · x is x². `evaluate` computes their value with the array namespace; `notation` formats them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

import numpy as np

from ...engine.tensor_interface import layer
from ..drawing.escaping import escaped

#: precedence of operations
COMPARED, ADDED, MULTIPLIED, NEGATED, RAISED, ATOM = range(6)


class Unknowable(Exception):
    """A rule needs the value of an expression that has none."""


class Expression:
    """A formula: a number, a symbol, or an operation on expressions.

    >>> from flambeau.viz.traces.expressions import Symbol
    >>> x = Symbol("x")
    >>> print(x * 1 + 0, x * x, -(-x) / 2)
    x x² x / 2
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Expression:
        return add(self, other)

    def __radd__(self, other: Any) -> Expression:
        return add(other, self)

    def __sub__(self, other: Any) -> Expression:
        return subtract(self, other)

    def __rsub__(self, other: Any) -> Expression:
        return subtract(other, self)

    def __mul__(self, other: Any) -> Expression:
        return multiply(self, other)

    def __rmul__(self, other: Any) -> Expression:
        return multiply(other, self)

    def __truediv__(self, other: Any) -> Expression:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return divide(other, self)

    def __pow__(self, other: Any) -> Expression:
        return power(self, other)

    def __rpow__(self, other: Any) -> Expression:
        return power(other, self)

    def __matmul__(self, other: Any) -> Expression:
        return Call("matmul", (self, other))

    def __neg__(self) -> Expression:
        return negate(self)

    def __lt__(self, other: Any) -> Expression:
        return Operation("<", self, as_expression(other))

    def __le__(self, other: Any) -> Expression:
        return Operation("<=", self, as_expression(other))

    def __gt__(self, other: Any) -> Expression:
        return Operation(">", self, as_expression(other))

    def __ge__(self, other: Any) -> Expression:
        return Operation(">=", self, as_expression(other))

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Operation("==", self, as_expression(other))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Operation("!=", self, as_expression(other))

    def __getitem__(self, index: Any) -> Expression:
        return Item(self, index)

    def __bool__(self) -> bool:
        raise Unknowable("whether an expression is true")

    def __iter__(self) -> Iterator[Any]:
        raise Unknowable("how many parts an expression has")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._number().shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        return self._number().dtype

    def _number(self) -> Any:
        try:
            return evaluate(self)
        except Exception as error:
            raise Unknowable("the value of an expression") from error



class Number(Expression):
    """A Python number."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Filled(Number):
    """A tensor filled with one number, of another's shape; it behaves as the number."""

    __slots__ = ("like",)

    def __init__(self, value: Any, like: Any) -> None:
        super().__init__(value)
        self.like = like


class Symbol(Expression):
    """A variable, or a named value.

    Attributes:
        text: its text.
        latex: its LaTeX.
        value: its array, if any.
    """

    __slots__ = ("latex", "text", "value")

    def __init__(self, text: str, latex: str | None = None, value: Any = None) -> None:
        self.text, self.value = text, value
        self.latex = (text if len(text) == 1 else rf"\mathrm{{{escaped(text)}}}") if latex is None else latex


class Operation(Expression):
    """An arithmetic operation or a comparison: `+ - * / ** neg < <= > >= == !=`."""

    __slots__ = ("left", "operator", "right")

    def __init__(self, operator: str, left: Expression, right: Expression | None = None) -> None:
        self.operator, self.left, self.right = operator, left, right


class Call(Expression):
    """A function of expressions: `sin(x)`, `where(c, a, b)`, `sum(x, dim=0)`."""

    __slots__ = ("arguments", "name", "parameters")

    def __init__(self, name: str, arguments: tuple[Any, ...], parameters: Mapping[str, Any] | None = None) -> None:
        self.name, self.arguments, self.parameters = name, arguments, dict(parameters or {})


class Item(Expression):
    """A part of an expression, `x[0]`: one of the results of a function that has several."""

    __slots__ = ("index", "operand")

    def __init__(self, operand: Expression, index: Any) -> None:
        self.operand, self.index = operand, index


def as_expression(value: Any) -> Expression:
    """A value of a declaration as an expression."""
    return value if isinstance(value, Expression) else Number(value)


def same(a: Any, b: Any) -> bool:
    """Whether two expressions are structurally equal."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Number):
        return bool(a.value == b.value)
    if isinstance(a, Symbol):
        return a.text == b.text and a.value is b.value
    if isinstance(a, Operation):
        return a.operator == b.operator and same(a.left, b.left) and same(a.right, b.right)
    if isinstance(a, Call):
        return (a.name == b.name and len(a.arguments) == len(b.arguments)
                and all(map(same, a.arguments, b.arguments)) and a.parameters == b.parameters)
    if isinstance(a, Item):
        return same(a.operand, b.operand) and bool(a.index == b.index)
    return a is b or (not isinstance(a, (list, tuple)) and bool(a == b))


def is_number(x: Any, value: Any = None) -> TypeGuard[Number]:
    """Whether an expression is a number, or this number."""
    return isinstance(x, Number) and not isinstance(x.value, bool) and (value is None or bool(x.value == value))


def _operation(x: Any, operator: str) -> TypeGuard[Operation]:
    return isinstance(x, Operation) and x.operator == operator


def add(left: Any, right: Any) -> Expression:
    """a + b."""
    a, b = as_expression(left), as_expression(right)
    if is_number(a) and is_number(b):
        return Number(a.value + b.value)
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    if _operation(b, "neg"):
        return subtract(a, b.left)
    if is_number(b) and not isinstance(b.value, complex) and b.value < 0:
        return Operation("-", a, Number(-b.value))
    if same(a, b):
        return multiply(2, a)
    return Operation("+", a, b)


def subtract(left: Any, right: Any) -> Expression:
    """a - b."""
    a, b = as_expression(left), as_expression(right)
    if is_number(a) and is_number(b):
        return Number(a.value - b.value)
    if is_number(b, 0):
        return a
    if is_number(a, 0):
        return negate(b)
    if _operation(b, "neg"):
        return add(a, b.left)
    return Operation("-", a, b)


def negate(value: Any) -> Expression:
    """-x."""
    x = as_expression(value)
    if is_number(x):
        return Number(-x.value)
    if _operation(x, "neg"):
        return x.left
    return Operation("neg", x)


def multiply(left: Any, right: Any) -> Expression:
    """a · b."""
    a, b = as_expression(left), as_expression(right)
    if is_number(a) and is_number(b):
        return Number(a.value * b.value)
    for one, other in ((a, b), (b, a)):
        if is_number(one, 1):
            return other
        if is_number(one, -1):
            return negate(other)
        if is_number(one, 0):
            return Number(0)
    for one, other in ((a, b), (b, a)):
        if _operation(one, "neg"):
            return negate(multiply(one.left, other) if one is a else multiply(other, one.left))
        if is_number(one) and not isinstance(one.value, complex) and one.value < 0:
            return negate(multiply(-one.value, other) if one is a else multiply(other, -one.value))
    if is_number(a) and _operation(b, "*") and is_number(b.left):
        return multiply(a.value * b.left.value, b.right)
    if is_number(b) and not is_number(a) and _operation(a, "*") and is_number(a.left):
        return multiply(a.left.value * b.value, a.right)
    base_a, exponent_a = _as_power(a)
    base_b, exponent_b = _as_power(b)
    if exponent_a is not None and exponent_b is not None and same(base_a, base_b):
        return power(base_a, exponent_a + exponent_b)
    if _operation(a, "/") and is_number(a.left, 1):
        return divide(b, a.right)
    if _operation(b, "/") and is_number(b.left, 1):
        return divide(a, b.right)
    return Operation("*", a, b)


def _as_power(x: Expression) -> tuple[Expression, Any]:
    """The base and the exponent of a power with an integer exponent; else the expression and 1."""
    if isinstance(x, Operation) and x.operator == "**":
        return x.left, x.right.value if isinstance(x.right, Number) and isinstance(x.right.value, int) else None
    return x, None if is_number(x) else 1


def divide(left: Any, right: Any) -> Expression:
    """a / b."""
    a, b = as_expression(left), as_expression(right)
    if is_number(b, 1):
        return a
    if is_number(a, 0):
        return Number(0)
    if is_number(a) and is_number(b) and b.value:
        return Number(a.value / b.value)
    if _operation(a, "neg"):
        return negate(divide(a.left, b))
    if _operation(b, "neg"):
        return negate(divide(a, b.left))
    if _operation(a, "/"):
        return divide(a.left, multiply(a.right, b))
    if _operation(b, "/") and is_number(b.left, 1):
        return multiply(a, b.right)
    return Operation("/", a, b)


def power(left: Any, right: Any) -> Expression:
    """a to the power b."""
    a, b = as_expression(left), as_expression(right)
    if isinstance(b, Number) and isinstance(b.value, float) and b.value.is_integer():
        b = Number(int(b.value))
    if is_number(b, 1):
        return a
    if is_number(b, 0):
        return Number(1)
    return Operation("**", a, b)


def where(condition: Any, chosen: Any, other: Any) -> Expression:
    """One where the condition holds, else the other."""
    c, a, b = as_expression(condition), as_expression(chosen), as_expression(other)
    if isinstance(c, Number):
        return a if c.value else b
    return a if same(a, b) else Call("where", (c, a, b))


_RUN: dict[str, Any] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "**": lambda a, b: layer.arrays.pow(a, b) if hasattr(a, "ndim") else layer.arrays.scalar_pow(a, b),
}


def evaluate(x: Any, values: Mapping[str, Any] | None = None) -> Any:
    """The value of an expression, computed on arrays.

    Args:
        values: text of a symbol -> its value. Default: the symbol's own value.

    Raises:
        Unknowable: a symbol has no value.

    >>> from flambeau.viz.traces.expressions import Symbol, evaluate
    >>> x = Symbol("x")
    >>> float(evaluate(x * x + 1, {"x": 3.}))
    10.0
    """
    if isinstance(x, Number):
        return _filled(x, values)
    if isinstance(x, Symbol):
        value = x.value if values is None else values.get(x.text, x.value)
        if value is None:
            raise Unknowable(f"the value of {x.text}")
        return np.asarray(value)
    if isinstance(x, Operation):
        left = evaluate(x.left, values)
        if x.operator == "neg":
            return -left
        return _RUN[x.operator](left, evaluate(x.right, values))
    if isinstance(x, Call):
        given = [np.asarray(found) if isinstance(argument, Number) else found
                 for argument in x.arguments for found in (evaluate(argument, values),)]
        run = getattr(layer.arrays, x.name)
        return run(*given, **{name: evaluate(value, values) for name, value in x.parameters.items()})
    if isinstance(x, Item):
        return evaluate(x.operand, values)[x.index]
    return [evaluate(item, values) for item in x] if type(x) is list else (
        tuple(evaluate(item, values) for item in x) if type(x) is tuple else x)


def _filled(x: Number, values: Mapping[str, Any] | None) -> Any:
    """A number; a `Filled` one as an array of its shape."""
    if isinstance(x, Filled):
        try:
            return np.full(np.shape(evaluate(x.like, values)), x.value, float)
        except Unknowable:
            pass
    return x.value


def substituted(x: Any, symbols: Mapping[str, Symbol]) -> Any:
    """An expression with symbols replaced, by their texts, without simplification.

    >>> from flambeau.viz.traces.expressions import Symbol, substituted
    >>> x, y = Symbol("x"), Symbol("y")
    >>> print(substituted(x * x + y, {"x": Symbol("3"), "y": Symbol("-9")}))
    3² + (-9)
    """
    if isinstance(x, Symbol):
        return symbols.get(x.text, x)
    if isinstance(x, Operation):
        right = None if x.right is None else substituted(x.right, symbols)
        return Operation(x.operator, substituted(x.left, symbols), right)
    if isinstance(x, Call):
        return Call(x.name, substituted(x.arguments, symbols),
                    {name: substituted(value, symbols) for name, value in x.parameters.items()})
    if isinstance(x, Item):
        return Item(substituted(x.operand, symbols), x.index)
    return type(x)(substituted(item, symbols) for item in x) if type(x) in (list, tuple) else x


def parts(x: Any) -> Iterator[Expression]:
    """An expression and all its subexpressions."""
    if isinstance(x, Expression):
        yield x
    if isinstance(x, Operation):
        yield from parts(x.left)
        yield from parts(x.right)
    elif isinstance(x, Call):
        for argument in (*x.arguments, *x.parameters.values()):
            yield from parts(argument)
    elif isinstance(x, Item):
        yield from parts(x.operand)
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from parts(item)
