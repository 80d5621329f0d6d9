"""Gradients of a weight that is used again and again, added up in one product at the end.

A recurrent network multiplies by the same weight at every step. Each step's gradient of it is a product over the rows
of a batch, often few: as quick as a product over the rows of many steps at once, and it has to be added to what there
is. So where a weight that is a leaf is met again, `linear` answers the engine with what the gradient is made of, and
`+` puts it aside. Whoever wants an array (`numpy.asarray`, an addition to an array) has the sum computed.

Only the short ways backward make these, for a leaf's own accumulator; wherever anybody may look, `settled` is first.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ..backends.compiled import row_sum
from ..backends.compiled.families import matmul as products
from ..backends.errstate import run_in_quiet
from .compiled_rules import add

#: what is put aside is added up when it has so many rows, or bytes
ROWS, BYTES = 2048, 1 << 22
#: gradients over more rows than this are not put aside
FEW = 256


class Gathered:
    """A sum of arrays that are not computed yet, all of one shape.

    Attributes:
        total: what has been computed of it; None for nothing.
        given: the rows of cotangents that wait.
        rows, size: how many rows, and bytes, wait.
    """

    __slots__ = ("given", "rows", "size", "total")
    given: list[np.ndarray]
    rows: int
    size: int
    total: Any

    def __add__(self, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            other = np.asarray(other)
            self.total = other if self.total is None else add(self.total, other)
            return self
        if other.total is not None:
            self.total = other.total if self.total is None else add(self.total, other.total)
        self._take(other)
        self.rows += other.rows
        self.size += other.size
        if self.rows >= ROWS or self.size >= BYTES:
            self._fold()
        return self

    __radd__ = __add__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The sum; an array that nobody else has."""
        self._fold()
        result, self.total = self.total, None
        return result if dtype is None else result.astype(dtype, copy=False)

    def _fold(self) -> None:
        """Compute what waits."""
        if self.given:
            found = run_in_quiet(self._sum, ())  # where memory is kept
            self.total = found if self.total is None else add(self.total, found)
            self._forget()

    def _take(self, other: Any) -> None:
        """Have what waits in another one wait here."""
        raise NotImplementedError

    def _sum(self) -> np.ndarray:
        """The sum of what waits."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Nothing waits any more."""
        self.given = []
        self.rows = self.size = 0


def _pieces(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Few arrays with the rows of all: the large ones as they are, the others in one."""
    if len(arrays) == 1:
        return arrays
    small = [each for each in arrays if len(each) <= FEW]
    return [*(each for each in arrays if len(each) > FEW), *([np.concatenate(small)] if small else ())]


class RowSum(Gathered):
    """Σ over rows of cotangents: the gradient of a bias.

    Args:
        given: cotangents, (N, out), in a list that nobody else has.
    """

    __slots__ = ()

    def __init__(self, given: list[np.ndarray]) -> None:
        self.total = None
        self.given = given
        self.rows, self.size = sum(map(len, given)), sum(each.nbytes for each in given)

    def _take(self, other: Any) -> None:
        self.given += other.given

    def _sum(self) -> np.ndarray:
        return reduce(add, map(row_sum, _pieces(self.given)))


class Outer(Gathered):
    """Σ gᵀ x over pairs of cotangents (N, out) and inputs (N, in): the gradient of a weight, or its transpose.

    Args:
        given, x: cotangents, and as many inputs, whose rows belong together, in lists that nobody else has.
        turned: whether it is the transpose.
    """

    __slots__ = ("turned", "x")

    def __init__(self, given: list[np.ndarray], x: list[np.ndarray], turned: bool) -> None:
        self.total = None
        self.given, self.x = given, x
        self.rows, self.size = sum(map(len, given)), sum(each.nbytes for each in (*given, *x))
        self.turned = turned

    @property
    def T(self) -> Outer:
        """The transpose."""
        assert self.total is None
        self.turned = not self.turned
        return self

    def _take(self, other: Any) -> None:
        self.given += other.given
        self.x += other.x

    def _forget(self) -> None:
        super()._forget()
        self.x = []

    def _sum(self) -> np.ndarray:
        found: np.ndarray = reduce(add, [products.mm(g.T, x) for g, x in zip(
            _pieces(self.given), _pieces(self.x), strict=True)])
        return found.T if self.turned else found


def settled(g: Any) -> Any:
    """A cotangent, as an array if it is one that waits."""
    return np.asarray(g) if isinstance(g, Gathered) else g
