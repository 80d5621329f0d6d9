"""Gradients of a weight that is used again and again, added up in one product at the end.

A recurrent network multiplies by the same weight at every step. Each step's gradient of it is a product over the rows
of a batch, often few: as quick as a product over the rows of many steps at once, and it has to be added to what there
is. So where a weight that is a leaf is met again, `linear` answers the engine with what the gradient is made of, and
`+` puts it aside. Whoever wants an array (`numpy.asarray`, an addition to an array) has the sum computed.

Only the short ways backward make these, for a leaf's own accumulator; wherever anybody may look, `settled` is first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.compiled import products
from ..backends.errstate import run_in_quiet
from .kernel_runs import add

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

    def __init__(self, g: np.ndarray) -> None:
        self.total: Any = None
        self.given = [g]
        self.rows, self.size = len(g), g.nbytes

    def __add__(self, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            other = np.asarray(other)
            self.total = other if self.total is None else add(self.total, other)
            return self
        if other.total is not None:
            self.total = other.total if self.total is None else add(self.total, other.total)
        self._take(other)
        if self.rows >= ROWS or self.size >= BYTES:
            self._fold()
        return self

    __radd__ = __add__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The sum; an array that nobody else has."""
        self._fold()
        result, self.total = self.total, None
        return result if dtype is None else result.astype(dtype, copy=False)

    def _take(self, other: Any) -> None:
        self.given += other.given
        self.rows += other.rows
        self.size += other.size

    def _fold(self) -> None:
        """Compute what waits."""
        if self.given:
            found = run_in_quiet(self._sum, ())  # where memory is kept
            self.total = found if self.total is None else add(self.total, found)
            self._forget()

    def _sum(self) -> np.ndarray:
        raise NotImplementedError

    def _forget(self) -> None:
        self.given = []
        self.rows = self.size = 0

    def _rows(self) -> np.ndarray:
        """All cotangents that wait, as one array."""
        return self.given[0] if len(self.given) == 1 else np.concatenate(self.given)


class RowSum(Gathered):
    """Σ over rows of cotangents: the gradient of a bias."""

    __slots__ = ()

    def _sum(self) -> np.ndarray:
        found: np.ndarray = np.add.reduce(self._rows(), 0)
        return found


class Outer(Gathered):
    """Σ gᵀ x over pairs of cotangents (N, out) and inputs (N, in): the gradient of a weight, or its transpose."""

    __slots__ = ("turned", "x")

    def __init__(self, g: np.ndarray, x: np.ndarray) -> None:
        super().__init__(g)
        self.x = [x]
        self.size += x.nbytes
        self.turned = False

    @property
    def T(self) -> Outer:
        """The transpose."""
        assert self.total is None
        self.turned = not self.turned
        return self

    def _take(self, other: Outer) -> None:
        super()._take(other)
        self.x += other.x

    def _forget(self) -> None:
        super()._forget()
        self.x = []

    def _sum(self) -> np.ndarray:
        x = self.x[0] if len(self.x) == 1 else np.concatenate(self.x)
        found: np.ndarray = products.mm(self._rows().T, x)
        return found.T if self.turned else found


def settled(g: Any) -> Any:
    """A cotangent, as an array if it is one that waits."""
    return np.asarray(g) if isinstance(g, Gathered) else g
