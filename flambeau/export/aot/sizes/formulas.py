"""Formulas of sizes: numbers of a graph as functions of dynamic sizes, from their values for some combinations.

A formula is a sum of products of *symbols*. Symbols are the sizes, and what follows from them: the extent of a padded
image, and quotients that are rounded down, as convolutions with strides and pooling make them. A quotient is accepted
if no other one of its form has the same values in the whole range; where two are left, the combination for which they
differ is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Any, NamedTuple

import numpy as np

from ....compiler.symbolic.formulas import NotSymbolic

Combination = tuple[int, ...]
Column = tuple[int, ...]
#: the most symbols of which products of three are looked up, and the largest divisor of a rounded quotient
_FEW, _LARGEST_DIVISOR = 24, 64


class Product(NamedTuple):
    """factor * the product of symbols, by their numbers."""

    factor: Fraction
    symbols: tuple[int, ...]


class SizeFormula(NamedTuple):
    """A sum of products, divided and rounded down."""

    terms: tuple[Product, ...]
    divisor: int = 1


class MissingCombination(Exception):
    """The combination that has to be captured before a formula is known."""

    def __init__(self, combination: Combination) -> None:
        super().__init__(combination)
        self.combination = combination


class FormulaSearch:
    """Finds formulas of numbers.

    Args:
        combinations: all combinations of sizes.
        probes: those for which the numbers are known.

    Attributes:
        derived: the symbols that are no sizes, in order: formulas of the symbols before.

    >>> search = FormulaSearch([(n,) for n in range(4, 41)], [(37,), (31,), (4,), (40,), (22,), (9,)])
    >>> half = search.formula([19, 16, 2, 20, 11, 5])
    >>> evaluate(half, extended([7], search.derived)), evaluate(half, extended([8], search.derived))
    (4, 4)
    """

    def __init__(self, combinations: Sequence[Combination], probes: Sequence[Combination]) -> None:
        self._combinations = combinations
        self._columns: list[np.ndarray] = []  # by symbol, its values for all combinations
        self._values: list[Column] = []  # and for the probes
        self._products: list[list[tuple[tuple[int, ...], Column]]] = [[], [], []]  # by degree
        self._direct: dict[Column, tuple[tuple[int, ...], Column]] = {}
        self._shifted: dict[Column, tuple[tuple[int, ...], Column]] = {}
        self._known: dict[Column, int | SizeFormula] = {}
        self.derived: list[SizeFormula] = []
        for i, column in enumerate(zip(*combinations, strict=True)):
            self._add(np.array(column, np.int64), tuple([each[i] for each in probes]))

    def formula(self, numbers: Sequence[int]) -> int | SizeFormula:
        """A number, or its formula if it is not the same for all probes.

        Raises:
            NotSymbolic: no formula is found.
            MissingCombination: several are, and this combination decides.
        """
        column = tuple(numbers)
        if len(set(column)) == 1:
            return column[0]
        if column not in self._known:
            self._known[column] = self._found(column)
        return self._known[column]

    def _found(self, column: Column) -> SizeFormula:
        found = self._product(column) or self._with_offset(column)
        if found is not None:
            return found
        found = self._quotient(column) or self._sum(column)
        if found is None:
            raise NotSymbolic(f"a number that is {', '.join(map(str, column))}")
        return found

    def _add(self, values: np.ndarray, column: Column) -> int:
        """Add a symbol, and the products with it."""
        number = len(self._values)
        self._columns.append(values)
        self._values.append(column)
        added: list[tuple[tuple[int, ...], Column]] = [((number,), column)]
        for degree in range(3):
            self._products[degree] += added
            for symbols, product in added:
                if degree < 2:
                    first = product[0]
                    self._shifted.setdefault(_direction([n - first for n in product]), (symbols, product))
                self._direct.setdefault(_direction(product), (symbols, product))
            if degree == 2 or (degree == 1 and number >= _FEW):
                break
            added = [((*symbols, number), tuple([n * m for n, m in zip(product, column, strict=True)]))
                     for symbols, product in self._products[degree]]
        return number

    def _product(self, column: Column) -> SizeFormula | None:
        """A factor times a product of up to five symbols."""
        found = self._direct.get(_direction(column))
        if found is not None:
            return SizeFormula((Product(_ratio(column, found[1]), found[0]),))
        if 0 in column:
            return None
        for symbols, product in (*self._products[1], *self._products[0]):
            if 0 in product:
                continue
            scale = lcm(*product)
            rest = tuple([n * (scale // m) for n, m in zip(column, product, strict=True)])
            found = self._direct.get(_direction(rest))
            if found is not None:
                factor = _ratio(rest, found[1]) / scale
                return SizeFormula((Product(factor, (*symbols, *found[0])),))
        return None

    def _with_offset(self, column: Column) -> SizeFormula | None:
        """A factor times a product of up to two symbols, plus a constant, which becomes a symbol if it is one size."""
        first = column[0]
        found = self._shifted.get(_direction([n - first for n in column]))
        if found is None:
            return None
        symbols, product = found
        i = next(i for i, n in enumerate(column) if n != first)
        factor = Fraction(column[i] - first, product[i] - product[0])
        offset = first - factor * product[0]
        formula = SizeFormula((Product(factor, symbols), *([Product(offset, ())] if offset else [])))
        if len(symbols) == 1 and factor > 0:
            self._define(formula, column)
        return formula

    def _define(self, formula: SizeFormula, column: Column) -> int:
        with np.errstate(all="ignore"):
            values = evaluate(formula, self._columns)
        self.derived.append(formula)
        return self._add(values, column)

    def _quotient(self, column: Column) -> SizeFormula | None:
        """A factor times a symbol plus a number, divided and rounded down."""
        common = gcd(*column)
        reduced = [n // common for n in column]
        for divisor in range(2, _LARGEST_DIVISOR + 1):
            for number, symbol in enumerate(self._values):
                low = max(divisor * n - m for n, m in zip(reduced, symbol, strict=True))
                high = min(divisor * n - m for n, m in zip(reduced, symbol, strict=True)) + divisor - 1
                if low > high or low < -4 * divisor or high > 4 * divisor:
                    continue
                values = self._columns[number]
                if low < high:
                    differ = ((values + low) // divisor != (values + high) // divisor).nonzero()[0]
                    if len(differ):
                        raise MissingCombination(self._combinations[differ[len(differ) // 2]])
                terms = Product(Fraction(1), (number,)), *([Product(Fraction(low), ())] if low else [])
                symbol_number = self._define(SizeFormula(terms, divisor), tuple(reduced))
                return SizeFormula((Product(Fraction(common), (symbol_number,)),))
        return None

    def _sum(self, column: Column) -> SizeFormula | None:
        """A known number plus a product, such as the elements of several images."""
        for known, formula in list(self._known.items()):
            if isinstance(formula, int) or formula.divisor != 1:
                continue
            for sign in (1, -1):
                rest = tuple([n - sign * m for n, m in zip(column, known, strict=True)])
                found = self._product(rest)
                if found is not None:
                    mine = tuple([each._replace(factor=sign * each.factor) for each in formula.terms])
                    return SizeFormula((*mine, *found.terms))
        return None


def _direction(numbers: Sequence[int]) -> Column:
    """Numbers divided by their greatest common divisor, the first that is not zero being positive."""
    common = gcd(*numbers) or 1
    if next((n for n in numbers if n), 1) < 0:
        common = -common
    return tuple([n // common for n in numbers])


def _ratio(column: Sequence[int], product: Sequence[int]) -> Fraction:
    i = next(i for i, n in enumerate(product) if n)
    return Fraction(column[i], product[i])


def evaluate(formula: Any, symbols: Sequence[Any]) -> Any:
    """The value of a formula for symbols, which may be symbolic integers or arrays; of a number, the number.

    Raises:
        NotSymbolic: it is no integer.
    """
    if not isinstance(formula, SizeFormula):
        return formula
    scale = lcm(*[each.factor.denominator for each in formula.terms])
    total: Any = None
    for factor, numbers in formula.terms:
        term: Any = int(factor * scale)
        for number in numbers:
            term = symbols[number] * term if term != 1 else symbols[number]
        total = term if total is None else total + term
    if scale > 1 and np.any(total % scale != 0):
        raise NotSymbolic("a size that is rounded")
    total = total // scale if scale > 1 else total
    return total // formula.divisor if formula.divisor > 1 else total


def extended(sizes: Sequence[Any], derived: Sequence[SizeFormula]) -> list[Any]:
    """The values of all symbols: the sizes, and what is derived from them."""
    symbols = list(sizes)
    for formula in derived:
        symbols.append(evaluate(formula, symbols))
    return symbols


__all__ = ["Combination", "FormulaSearch", "MissingCombination", "Product", "SizeFormula", "evaluate", "extended"]
