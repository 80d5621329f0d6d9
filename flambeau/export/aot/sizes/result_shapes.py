"""Shapes of results as formulas of the dynamic sizes, for the header and the loader."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from ....compiler.symbolic.formulas import NotSymbolic
from ..capture import Capture
from ..errors import ExportError
from ..interface import DerivedSize, Extent
from .formulas import Combination, FormulaSearch, Product, SizeFormula


def result_shapes(
    names: Sequence[str], combinations: Sequence[Combination], captures: Sequence[tuple[Combination, Capture]]
) -> tuple[list[tuple[Extent, ...]], list[DerivedSize]]:
    """The shapes of results, and the numbers in them that follow from the sizes.

    Args:
        names: of the sizes.
        combinations: all combinations of sizes.
        captures: for some of them.

    Raises:
        ExportError: an extent is no formula of the sizes.
        MissingCombination: it is not known before this combination is captured.
    """
    search = FormulaSearch(combinations, [sizes for sizes, _ in captures])
    shapes: list[tuple[int | SizeFormula, ...]] = []
    for rows in zip(*[[shape for shape, _ in each.results] for _, each in captures], strict=True):
        try:
            shapes.append(tuple(search.formula(extents) for extents in zip(*rows, strict=True)))
        except NotSymbolic as reason:
            raise ExportError(f"an extent of a result is no formula of {', '.join(names)}: {reason}") from None
    named = _Named(names, search.derived)
    return [tuple(named.extent(each) for each in shape) for shape in shapes], named.used


class _Named:
    """Gives names to derived numbers as they are used."""

    def __init__(self, names: Sequence[str], derived: Sequence[SizeFormula]) -> None:
        self._names: list[str | None] = [*names, *[None] * len(derived)]
        self._derived = derived
        self._first = len(names)
        self.used: list[DerivedSize] = []

    def extent(self, number: int | SizeFormula) -> Extent:
        """A number as an extent."""
        if isinstance(number, int):
            return Extent(None, 0, number)
        offset = sum(each.factor for each in number.terms if not each.symbols)
        products = [each for each in number.terms if each.symbols]
        if number.divisor == 1 and len(products) == 1 and products[0].factor.denominator == 1 == offset.denominator:
            return self._term(products[0])._replace(offset=int(offset))
        return Extent(self._define(number), 1, 0)

    def _term(self, product: Product) -> Extent:
        return Extent("*".join(map(self._name, product.symbols)), int(product.factor), 0)

    def _name(self, symbol: int) -> str:
        name = self._names[symbol]
        if name is None:
            name = self._names[symbol] = self._define(self._derived[symbol - self._first])
        return name

    def _define(self, formula: SizeFormula) -> str:
        scale = lcm(*[each.factor.denominator for each in formula.terms])
        whole = [each._replace(factor=each.factor * scale) for each in formula.terms]
        terms = tuple(self._term(each) if each.symbols else Extent(None, 0, int(each.factor)) for each in whole)
        self.used.append(DerivedSize(f"extent_{len(self.used) + 1}", terms, formula.divisor * scale))
        return self.used[-1].name


__all__ = ["result_shapes"]
