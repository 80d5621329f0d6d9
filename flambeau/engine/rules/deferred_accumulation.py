"""Deferred gradient accumulation: the gradients of a weight that is used many times, computed in one matmul.

A recurrent network multiplies by the same weight at every step. Each step's gradient is a matmul over the rows of a
batch, often few: it takes as long as a matmul over the rows of many steps, and its result has to be added to the
gradient. So from the second use of a leaf on, the rule of `linear` returns the operands of the gradient instead
(`DeferredOuterProduct`, `DeferredRowSum`), and `+` concatenates them. `numpy.asarray`, or an addition to an array,
computes the sum.

Only specialised rules return deferred gradients, and only to a leaf's AccumulateGrad; where hooks or captures could
receive one, the engine calls `evaluate_deferred` first.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ...backends.compiled import sum_rows
from ...backends.compiled.families import matmul
from ...errstate import run_in_quiet
from .large_arrays import add

#: deferred operands are evaluated when they reach so many rows or bytes
FLUSH_ROWS, FLUSH_BYTES = 2048, 1 << 22
#: gradients over more rows than this are not deferred
MAX_DEFERRED_ROWS = 256


class DeferredSum:
    """A sum of gradients of one shape whose evaluation is deferred.

    Attributes:
        total: the part that was evaluated; None for none.
        cotangents: deferred operands: arrays of rows.
        rows, size: the number of rows, and of bytes, of the deferred operands.
    """

    __slots__ = ("cotangents", "rows", "size", "total")
    cotangents: list[np.ndarray]
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
        self._append(other)
        self.rows += other.rows
        self.size += other.size
        if self.rows >= FLUSH_ROWS or self.size >= FLUSH_BYTES:
            self._evaluate()
        return self

    __radd__ = __add__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Evaluate the sum; nothing else refers to the array."""
        self._evaluate()
        result, self.total = self.total, None
        return result if dtype is None else result.astype(dtype, copy=False)

    def _evaluate(self) -> None:
        """Evaluate the deferred operands."""
        if self.cotangents:
            part = run_in_quiet(self._sum, ())  # its memory comes from the allocator
            self.total = part if self.total is None else add(self.total, part)
            self._drop()

    def _append(self, other: Any) -> None:
        """Append the deferred operands of another sum."""
        raise NotImplementedError

    def _sum(self) -> np.ndarray:
        """The sum over the deferred operands."""
        raise NotImplementedError

    def _drop(self) -> None:
        """Drop the deferred operands."""
        self.cotangents = []
        self.rows = self.size = 0


def _concatenate_small(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The rows of all arrays in few: large arrays as they are, small ones concatenated."""
    if len(arrays) == 1:
        return arrays
    small = [array for array in arrays if len(array) <= MAX_DEFERRED_ROWS]
    return [*(array for array in arrays if len(array) > MAX_DEFERRED_ROWS), *([np.concatenate(small)] if small else ())]


class DeferredRowSum(DeferredSum):
    """Σ over rows of cotangents: the gradient of a bias.

    Args:
        cotangents: (N, out) each, in a list that the sum may append to.
    """

    __slots__ = ()

    def __init__(self, cotangents: list[np.ndarray]) -> None:
        self.total = None
        self.cotangents = cotangents
        self.rows, self.size = sum(map(len, cotangents)), sum(each.nbytes for each in cotangents)

    def _append(self, other: Any) -> None:
        self.cotangents += other.cotangents

    def _sum(self) -> np.ndarray:
        return reduce(add, map(sum_rows, _concatenate_small(self.cotangents)))


class DeferredOuterProduct(DeferredSum):
    """Σ gᵀ x over pairs of cotangents (N, out) and inputs (N, in): the gradient of a weight, or its transpose.

    Args:
        cotangents, x: as many cotangents as inputs, with corresponding rows, in lists that the sum may append to.
        transposed: whether the sum is the transpose.
    """

    __slots__ = ("transposed", "x")

    def __init__(self, cotangents: list[np.ndarray], x: list[np.ndarray], transposed: bool) -> None:
        self.total = None
        self.cotangents, self.x = cotangents, x
        self.rows, self.size = sum(map(len, cotangents)), sum(each.nbytes for each in (*cotangents, *x))
        self.transposed = transposed

    @property
    def T(self) -> DeferredOuterProduct:
        """The transpose."""
        assert self.total is None
        self.transposed = not self.transposed
        return self

    def _append(self, other: Any) -> None:
        self.cotangents += other.cotangents
        self.x += other.x

    def _drop(self) -> None:
        super()._drop()
        self.x = []

    def _sum(self) -> np.ndarray:
        product: np.ndarray = reduce(add, [matmul.mm(g.T, x) for g, x in zip(
            _concatenate_small(self.cotangents), _concatenate_small(self.x), strict=True)])
        return product.T if self.transposed else product


def evaluate_deferred(g: Any) -> Any:
    """A cotangent; a deferred one is evaluated."""
    return np.asarray(g) if isinstance(g, DeferredSum) else g


__all__ = ["FLUSH_BYTES", "FLUSH_ROWS", "MAX_DEFERRED_ROWS", "DeferredOuterProduct", "DeferredRowSum", "DeferredSum",
           "evaluate_deferred"]
