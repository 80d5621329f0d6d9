"""Launches of factorizations, solutions and distances of small matrices: LAPACK's ufuncs on memory of the result's
layout, and built-in functions.

The bits are those of `kernels.lapack`: computed in float64, rounded to the dtype. A ufunc fills what fails with NaN; a
launch gives None then, and the function itself raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ... import codegen
from ...backends.compiled import solve_triangular
from ...errstate import run_quietly
from ...kernels import lapack
from ...runtime.filling import Filling, NewArray, with_filling

ndarray = np.ndarray
empty, zeros, copyto, where = np.empty, np.zeros, np.copyto, np.where
F64 = np.dtype(np.float64)
_sum = np.add.reduce
_ufuncs = lapack.ufuncs
Launch = Callable[..., Any] | None


@functools.lru_cache(256)
def _lower(rows: int, columns: int, diagonal: int) -> ndarray:
    """Whether elements are on or below a diagonal."""
    return np.tri(rows, columns, diagonal, bool)


def _new(shape: tuple[int, ...], dtype: np.dtype) -> ndarray:
    """Memory for column-major matrices."""
    return empty((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


def _succeeded(x: ndarray) -> bool:
    """Whether no matrix is filled with NaN, or has NaN, which reaches the first row of solutions."""
    first = x.item(0) if x.ndim == 2 else _sum(x[..., 0, 0], None)
    return bool(first == first)


def _is_factor(x: ndarray) -> bool:
    """Whether no Cholesky factor has NaN, which reaches its last pivot."""
    last = x.item(-1) if x.ndim == 2 else _sum(x[..., -1, -1], None)
    return bool(last == last)


def _quiet(compute: Callable[..., Any]) -> Launch:
    return lambda *arrays: run_quietly(compute, *arrays)


def _of_square(a: ndarray, compute: Callable[..., Any], succeeded: Callable[[ndarray], bool] = _succeeded) -> Launch:
    """The launch of a ufunc that makes a matrix of the same shape of each square one."""
    if not lapack.is_square(a):
        return None
    shape, dtype = a.shape, a.dtype

    def checked(x: ndarray) -> Any:
        result = compute(x, _new(shape, dtype), signature="d->d")
        return result if succeeded(result) else None

    return _quiet(checked)


def _cholesky(a: ndarray, upper: bool, check_errors: bool) -> Launch:
    return None if upper else _of_square(a, _ufuncs.cholesky_lo, _is_factor)


def _inverse(a: ndarray, check_errors: bool) -> Launch:
    return _of_square(a, _ufuncs.inv)


def _solution_shape(a: ndarray, b: ndarray) -> bool:
    """Whether LAPACK solves systems with matrices as right-hand sides, batch by batch."""
    return (lapack.is_square(a) and lapack.is_plain(b) and a.dtype is b.dtype and a.shape[:-1] == b.shape[:-1])


def _solution(a: ndarray, b: ndarray, left: bool, check_errors: bool) -> Launch:
    if not left or not _solution_shape(a, b):
        return None
    shape, dtype, solve = b.shape, a.dtype, _ufuncs.solve

    def compute(x: ndarray, y: ndarray) -> Any:
        solution = solve(x, y, _new(shape, dtype), signature="dd->d")
        return solution if _succeeded(solution) else None

    return _quiet(compute)


def _triangular_solution(a: ndarray, b: ndarray, upper: bool, left: bool, unitriangular: bool) -> Launch:
    if not left or unitriangular or not _solution_shape(a, b):
        return None
    shape, dtype, solve, order = b.shape, a.dtype, _ufuncs.solve, a.shape[-1]
    if solve_triangular(a, b, upper, False) is not None:
        def substitute(x: ndarray, y: ndarray) -> Any:
            solution = solve_triangular(x, y, upper, False)
            if solution is None:
                return None
            result = _new(shape, dtype)
            copyto(result, solution)
            return result

        return _quiet(substitute)
    triangle = ~_lower(order, order, -1) if upper else _lower(order, order, 0)

    def compute(x: ndarray, y: ndarray) -> Any:
        read = zeros(x.shape, F64)
        copyto(read, x, where=triangle)
        solution = solve(read, y, _new(shape, dtype), signature="dd->d")
        return solution if _succeeded(solution) else None

    return _quiet(compute)


def _qr(a: ndarray, mode: str) -> Launch:
    if mode != "reduced" or not lapack.is_plain(a):
        return None
    rows, columns = a.shape[-2:]
    rank, dtype = min(rows, columns), a.dtype
    q_shape, r_shape = (*a.shape[:-1], rank), (*a.shape[:-2], rank, columns)
    triangle = ~_lower(rank, columns, -1)
    factorize, reduced = _ufuncs.qr_r_raw, _ufuncs.qr_reduced

    def compute(x: ndarray) -> Any:
        factors = x.astype(F64)
        tau = factorize(factors, signature="d->d")
        q = reduced(factors, tau, _new(q_shape, dtype), signature="dd->d")
        r = zeros((*r_shape[:-2], columns, rank), dtype).swapaxes(-1, -2)
        copyto(r, factors[..., :rank, :], "same_kind", triangle)
        return q, r

    return _quiet(compute)


def _are_plain(*arrays: ndarray) -> bool:
    """Whether all are row-major, have elements, and one dtype, float32 or float64."""
    a = arrays[0]
    return codegen.available() and a.dtype.char in "fd" and all(
        each.dtype is a.dtype and each.size > 0 and each.flags.c_contiguous for each in arrays)


def _cross(a: ndarray, b: ndarray, dim: int) -> Launch:
    if a.ndim < 1 or a.shape != b.shape or a.shape[-1] != 3 or dim not in (-1, a.ndim - 1) or not _are_plain(a, b):
        return None
    from ...codegen.linalg import row_vectors

    multiply, shape, dtype = row_vectors.cross_products(a.dtype, a.size // 3), a.shape, a.dtype
    return with_filling(lambda x, y: multiply(empty(shape, dtype), x, y),
                        Filling(multiply, (NewArray(shape, dtype), 0, 1)))


def _pair_distances(a: ndarray, p: float) -> Launch:
    if p != 2 or not _are_plain(a) or a.shape[0] < 2:
        return None
    from ...codegen.linalg import row_vectors

    (rows, length), dtype = a.shape, a.dtype
    if length > row_vectors.MOST_TERMS:
        return None
    measure, shape = row_vectors.distances_of_pairs(dtype, rows, length), (rows * (rows - 1) // 2,)
    return with_filling(lambda x: measure(empty(shape, dtype), x), Filling(measure, (NewArray(shape, dtype), 0)))


def _distances(a: ndarray, b: ndarray, p: float) -> Launch:
    if p != 2 or not _are_plain(a, b) or a.shape[:-2] != b.shape[:-2]:
        return None
    from ...codegen.linalg import row_vectors

    (*batch, rows, length), columns, dtype = a.shape, b.shape[-2], a.dtype
    if length > row_vectors.MOST_TERMS:
        return None
    measure, shape = row_vectors.distances(dtype, prod(batch), rows, columns, length), (*batch, rows, columns)
    return with_filling(lambda x, y: measure(empty(shape, dtype), x, y),
                        Filling(measure, (NewArray(shape, dtype), 0, 1)))


MAKERS: dict[str, Callable[..., Launch]] = {
    "linalg_qr": _qr, "linalg_solve_triangular": _triangular_solution, "linalg_cross": _cross,
    "_pdist_forward": _pair_distances, "_cdist_forward": _distances}
#: launches of the first result of operators whose second one says which matrices have none
CHECKED: dict[str, Callable[..., Launch]] = {
    "linalg_cholesky_ex": _cholesky, "linalg_inv_ex": _inverse, "linalg_solve_ex": _solution}

__all__ = ["CHECKED", "MAKERS"]
