"""Expressions: numbers of a trace that were computed from numbers among the arguments.

Constants of the graph are matched with the numbers that Python code computed in each retrace. A constant is an
expression if the same computation, or a simple function of it, gave its value in every trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .formulas import Formula, NotSymbolic, OutOfTemplate, Sizes
from .number_reads import SymbolicNumber

#: functions that declarations apply to numbers: the constants of a program are often one of these
_FUNCTIONS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x, lambda x: -x, lambda x: 1 - x, lambda x: x - 1, lambda x: 1 / x, lambda x: x + 1, lambda x: 2 * x,
    lambda x: x * x, lambda x: x ** 0.5, lambda x: x ** -0.5, lambda x: 0.5 * x, lambda x: x * (x - 1))
#: numbers that a constant is compared with
_MAX_CANDIDATES = 400


class Symbol(NamedTuple):
    """An argument: the symbol of this number."""

    number: int


class Expression(NamedTuple):
    """A function of operands, which are numbers, formulas, symbols and expressions."""

    function: Callable[..., Any]
    operands: tuple[Any, ...]


def evaluate(x: Any, symbols: Sequence[Any]) -> Any:
    """Return the number that an expression, formula or symbol is for these values of the symbols.

    Raises:
        OutOfTemplate: it is not defined.

    >>> import operator
    >>> evaluate(Expression(operator.mul, (Symbol(0), 3)), (0.5,))
    1.5
    """
    kind = x.__class__
    if kind is Expression:
        try:
            return x.function(*[evaluate(operand, symbols) for operand in x.operands])
        except (ArithmeticError, ValueError) as error:
            raise OutOfTemplate(str(error)) from None
    if kind is Symbol:
        return symbols[x.number]
    return x.value(symbols) if kind is Formula else x


def expression(constants: Sequence[np.ndarray], computed: Sequence[Sequence[SymbolicNumber]], sizes: Sizes
               ) -> Expression | Symbol:
    """Return the expression of a constant.

    Args:
        constants: the constant in each retrace, then in the trace of the call; of one element, or all equal.
        computed: by retrace, the numbers that were computed from arguments.
        sizes: the values of the symbols in each trace.

    Raises:
        NotSymbolic: there is none.
    """
    dtype = constants[0].dtype
    bits = [a.reshape(-1)[:1].tobytes() for a in constants]
    for same in list(zip(*computed, strict=False))[-_MAX_CANDIDATES:]:
        for function in _FUNCTIONS:
            try:
                if any(_bits(function(each.value), dtype) != expected
                       for each, expected in zip(same, bits, strict=False)):
                    continue
                found = unified(same, sizes)
                found = found if function is _FUNCTIONS[0] else Expression(function, (found,))
                if all(_bits(evaluate(found, symbols), dtype) == expected
                       for symbols, expected in zip(sizes.sizes, bits, strict=True)):
                    return found
            except (NotSymbolic, OutOfTemplate, ArithmeticError, ValueError, TypeError):
                continue
    raise NotSymbolic("another constant")


def _bits(number: Any, dtype: np.dtype) -> bytes:
    with np.errstate(all="ignore"):
        return array_of(number, dtype).tobytes()


def array_of(number: Any, dtype: np.dtype) -> np.ndarray:
    """Return a Python number as a 0-d array of a dtype.

    Raises:
        OverflowError, TypeError: an integer dtype does not have it.
    """
    if dtype.kind in "biu" and not isinstance(number, int):
        raise TypeError("a number that is no integer")
    return np.array(number, dtype)


def unified(xs: Sequence[Any], sizes: Sizes) -> Any:
    """Return what computed a number of several traces: an expression, a symbol, a formula of sizes, or the number.

    Raises:
        NotSymbolic: it was not computed in the same way.
    """
    first = xs[0]
    if any((type(x) is SymbolicNumber) != (type(first) is SymbolicNumber) for x in xs):
        raise NotSymbolic("a number that is not always computed from arguments")
    if type(first) is not SymbolicNumber:
        if all(type(x) is int for x in xs):
            return sizes.formula(xs)
        if any(type(x) is not type(first) or x != first for x in xs):
            raise NotSymbolic("another number")
        return first
    if first.origin is None:  # of sizes
        if any(type(x.value) is not int or x.origin is not None for x in xs):
            if all(type(x.value) is float and x.value == first.value for x in xs):
                return first.value
            raise NotSymbolic("a number of sizes that is no integer")
        return sizes.formula([x.value for x in xs])
    if any(type(x.origin) is not type(first.origin) for x in xs):
        raise NotSymbolic("a number that was computed otherwise")
    if isinstance(first.origin, int):
        if any(x.origin != first.origin for x in xs):
            raise NotSymbolic("another argument")
        return Symbol(first.origin)
    function, *operands = first.origin
    if any(x.origin[0] is not function or len(x.origin) != len(first.origin) for x in xs):
        raise NotSymbolic("a number that was computed otherwise")
    return Expression(function, tuple([unified([x.origin[i] for x in xs], sizes)
                                       for i in range(1, len(operands) + 1)]))


#: classes of numbers that depend on symbols
SYMBOLIC = (Expression, Symbol, Formula)


def symbols_of(x: Any) -> frozenset[int]:
    """Return the indices of the symbols on which a number depends.

    >>> sorted(symbols_of(Expression(max, (Symbol(1), Expression(abs, (Symbol(0),)), 2))))
    [0, 1]
    """
    kind = x.__class__
    if kind is Expression:
        return frozenset().union(*map(symbols_of, x.operands))
    if kind is Symbol:
        return frozenset((x.number,))
    return frozenset([i for i, power in enumerate(x.powers) if power]) if kind is Formula else frozenset()


__all__ = ["SYMBOLIC", "Expression", "Symbol", "array_of", "evaluate", "expression", "symbols_of", "unified"]
