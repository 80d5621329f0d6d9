"""Launches of products of small matrices and vectors: BLAS at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.compiled.families.matmul import MIN_ELEMENTS as PRODUCTS
from ...errstate import quietly, run_in_quiet
from ...runtime.filling import Filling, NewArray, with_filling

ndarray = np.ndarray
dot, empty = np.dot, np.empty
Launch = Callable[..., Any] | None


def addmm(a: ndarray, x: ndarray, y: ndarray, beta: Any = 1, alpha: Any = 1) -> Launch:
    """The product of two matrices, by BLAS, and what is added to it."""
    if beta != 1 or alpha != 1 or x.ndim != 2 or y.ndim != 2 or not (a.dtype is x.dtype is y.dtype) or (
            a.dtype.char not in "fd" or x.shape[1] != y.shape[0] or x.size + y.size > PRODUCTS[0]):
        return None
    shape, dtype, add = (x.shape[0], y.shape[1]), a.dtype, np.add
    if np.broadcast_shapes(a.shape, shape) != shape:
        return None

    def multiply(a: ndarray, x: ndarray, y: ndarray) -> ndarray:
        result = empty(shape, dtype)
        dot(x, y, result)
        return result

    def launch(a: ndarray, x: ndarray, y: ndarray) -> ndarray:
        result = dot(x, y)
        return add(result, a, result)

    product = with_filling(multiply, Filling(dot, (1, 2, NewArray(shape, dtype))))
    total = with_filling(lambda p, a: add(p, a, empty(shape, dtype)),
                         Filling(quietly, ([add], 0, 1, NewArray(shape, dtype))))
    launch.steps = ((product, (0, 1, 2)), (total, (3, 0))), 1  # type: ignore[attr-defined]
    return launch


def product_with_vector(a: ndarray, b: ndarray) -> Launch:
    """The product of a vector or a matrix with a vector, as BLAS has it."""
    if b.ndim != 1 or not 0 < a.ndim < 3 or a.dtype is not b.dtype or a.dtype.char not in "fd" or (
            a.shape[-1] != b.size) or a.size + b.size > 4 * PRODUCTS[0]:
        return None
    shape, dtype = a.shape[:-1], a.dtype

    def launch(x: ndarray, y: ndarray) -> ndarray:
        result = empty(shape, dtype)
        run_in_quiet(dot, (x, y, result))  # which returns a scalar for vectors
        return result

    return with_filling(launch, Filling(quietly, ([dot], 0, 1, NewArray(shape, dtype))))


__all__ = ["addmm", "product_with_vector"]
