"""Expressions of dynamic sizes: polynomials of symbols, of quotients rounded down and of remainders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Expression:
    """A polynomial with integer coefficients.

    Args:
        terms: product of atoms, as a sorted tuple of their texts -> coefficient.

    >>> from flambeau.export.tracing.expressions import symbol
    >>> n = symbol("s7")
    >>> 2 * n + 1, 7 - n, (n + 1) // 2, n * n
    (2*s7 + 1, 7 - s7, ((s7 + 1)//2), s7**2)
    """

    def __init__(self, terms: Mapping[tuple[str, ...], int]) -> None:
        self.terms = {key: value for key, value in terms.items() if value}

    @property
    def constant(self) -> int | None:
        """Its value, if it contains no symbol."""
        if not self.terms:
            return 0
        return self.terms[()] if list(self.terms) == [()] else None

    @property
    def is_symbol(self) -> bool:
        """Whether it is one symbol."""
        (key, value), *rest = self.terms.items() or [((), 0)]
        return not rest and value == 1 and len(key) == 1 and key[0].isidentifier()

    def __add__(self, other: Any) -> Expression:
        terms = dict(self.terms)
        for key, value in as_expression(other).terms.items():
            terms[key] = terms.get(key, 0) + value
        return Expression(terms)

    __radd__ = __add__

    def __neg__(self) -> Expression:
        return Expression({key: -value for key, value in self.terms.items()})

    def __sub__(self, other: Any) -> Expression:
        return self + -as_expression(other)

    def __rsub__(self, other: Any) -> Expression:
        return as_expression(other) - self

    def __mul__(self, other: Any) -> Expression:
        terms: dict[tuple[str, ...], int] = {}
        for key, value in self.terms.items():
            for key2, value2 in as_expression(other).terms.items():
                product = tuple(sorted(key + key2))
                terms[product] = terms.get(product, 0) + value * value2
        return Expression(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Expression:
        divisor = as_expression(other)
        number = divisor.constant
        if number and all(value % number == 0 for value in self.terms.values()):
            return Expression({key: value // number for key, value in self.terms.items()})
        if self == divisor:
            return as_expression(1)
        return symbol(f"(({self})//{_factor(divisor)})" if len(self.terms) > 1 else f"({self}//{_factor(divisor)})")

    def __mod__(self, other: Any) -> Expression:
        divisor = as_expression(other)
        number = divisor.constant
        if number and all(value % number == 0 for value in self.terms.values()):
            return as_expression(0)
        return symbol(f"Mod({self}, {divisor})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        keys = sorted(self.terms, key=lambda key: (-len(key), key))
        if () in self.terms and all(self.terms[key] < 0 for key in keys if key):  # a number minus something
            keys = [(), *(key for key in keys if key)]
        text = ""
        for key in keys:
            value = self.terms[key]
            shown = "*".join(_powers(key))
            size = abs(value)
            part = str(size) if not key else shown if size == 1 else f"{size}*{shown}"
            if not text:
                text = part if value > 0 else f"-{part}"
            else:
                text += f" + {part}" if value > 0 else f" - {part}"
        return text

    __repr__ = __str__


def _powers(key: tuple[str, ...]) -> list[str]:
    return [atom if key.count(atom) == 1 else f"{atom}**{key.count(atom)}" for atom in dict.fromkeys(key)]


def _factor(expression: Expression) -> str:
    return f"({expression})" if len(expression.terms) > 1 else str(expression)


def symbol(text: str) -> Expression:
    """The expression that is one atom."""
    return Expression({(text,): 1})


def as_expression(value: Any) -> Expression:
    """An expression, or a number as one."""
    return value if isinstance(value, Expression) else Expression({(): int(value)})


def fitted(values: tuple[int, ...], known: Mapping[tuple[int, ...], Expression]) -> Expression | None:
    """The expression of known ones that has given values; None if none of the simple forms does.

    Args:
        values: the size in each lane.
        known: values of a size in each lane -> its expression.
    """
    found = known.get(values)
    if found is not None:
        return found
    for base, expression in known.items():
        found = _linear(values, base, expression)
        if found is not None:
            return found
    items = list(known.items())
    for i, (a, left) in enumerate(items):
        for b, right in items[i:]:
            for combine, joined in ((_product, left * right), (_sum, left + right)):
                found = _linear(values, combine(a, b), joined)
                if found is not None:
                    return found
    for base, expression in known.items():
        found = _quotient(values, base, expression)
        if found is not None:
            return found
    return None


def _product(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def _sum(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _linear(values: tuple[int, ...], base: tuple[int, ...], expression: Expression) -> Expression | None:
    """`factor * expression + offset`, if it has the values."""
    pair = next(((i, j) for i in range(len(base)) for j in range(i) if base[i] != base[j]), None)
    if pair is None:
        return None
    i, j = pair
    step, change = base[i] - base[j], values[i] - values[j]
    if change % step or not change:
        return None
    factor = change // step
    offset = values[i] - factor * base[i]
    if all(v == factor * b + offset for v, b in zip(values, base, strict=True)):
        return expression * factor + offset
    return None


def _quotient(values: tuple[int, ...], base: tuple[int, ...], expression: Expression) -> Expression | None:
    """`(expression + a) // divisor + b`, if it has the values."""
    for divisor in range(2, 33):
        for shift in range(divisor):
            offsets = {v - (b + shift) // divisor for v, b in zip(values, base, strict=True)}
            if len(offsets) == 1:
                return (expression + shift) // divisor + offsets.pop()
    return None


#: how numbers of the lanes and expressions are combined: name -> function
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}

__all__ = ["OPERATIONS", "Expression", "as_expression", "fitted", "symbol"]
