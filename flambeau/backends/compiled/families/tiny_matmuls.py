"""Batches of tiny matrices, multiplied element by element: a kernel whose operands are the columns of all matrices.

Element (i, p) of all matrices of a batch is a strided array, so that each product is a sum over such arrays, and the
batch is the loop. A matmul kernel takes 30 ns for each matrix, whatever its size; BLAS takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ....codegen.elementwise import elementwise
from ....codegen.scalar.scalar_ir import Node, variable
from ....runtime import thread_pool
from ....runtime.launch import Spec
from ..launching import Plan

ndarray = np.ndarray
#: the fewest matrices, as each array of elements is a view that takes 0.15 us; the most elements of the three matrices
#: of a product, as their kernel has an operand for each
_LEAST_BATCH, _MOST_ELEMENTS = 256, 27


def is_tiny(shape: Sequence[int], depth: int) -> bool:
    """Whether products of a batch, of this shape, are computed here.

    Args:
        depth: the extent that is summed over.

    >>> is_tiny((1000, 2, 2), 2), is_tiny((1000, 2, 2), 64), is_tiny((10, 2, 2), 2)
    (True, False, False)
    """
    n, m = shape[-2:]
    return 0 < n * depth + depth * m + n * m <= _MOST_ELEMENTS and prod(shape[:-2]) >= _LEAST_BATCH and min(
        n, m, depth) > 0


class TinyMatmul:
    """The product of batches of tiny matrices of given layouts.

    Args:
        shape: of the result, batches first.
        x, y: arrays of these layouts, (..., n, k) and (..., k, m), whose batches broadcast.
    """

    __slots__ = ("_enter", "_places", "_plan")

    def __init__(self, shape: tuple[int, ...], x: ndarray, y: ndarray) -> None:
        n, depth, m = x.shape[-2], x.shape[-1], y.shape[-1]
        self._places = tuple(tuple((..., *index) for index in product(range(rows), range(columns)))
                             for rows, columns in ((n, m), (n, depth), (depth, m)))
        arrays = self._elements(np.empty(shape, x.dtype), x, y)
        specs = [Spec.of(each) for each in arrays]
        self._plan = Plan([], elementwise.launches(_sums(n, depth, m, x.dtype), specs[:n * m], specs[n * m:]))
        self._enter = self._plan.enter

    def run(self, operands: tuple[ndarray, ndarray, ndarray]) -> None:
        """Multiply (result, x, y)."""
        self._enter(thread_pool.pool(), *self._elements(*operands))

    def _elements(self, *matrices: ndarray) -> list[Any]:
        return [a[place] for a, places in zip(matrices, self._places, strict=True) for place in places]


@lru_cache(64)
def _sums(n: int, depth: int, m: int, dtype: np.dtype) -> tuple[Node, ...]:
    """The elements of a product, by rows, as sums over those of the first matrix and then of the second."""
    def element(i: int, j: int) -> Node:
        terms = [variable(i * depth + p, dtype) * variable(n * depth + p * m + j, dtype) for p in range(depth)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    return tuple(element(i, j) for i, j in product(range(n), range(m)))


__all__ = ["TinyMatmul", "is_tiny"]
