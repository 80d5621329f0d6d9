"""LU, LDL and compact QR factorizations on arrays, and products with them; matrices are column-major, as LAPACK's."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...kernels import factorization as kernels
from ..compiled import eliminate_panels, solve_triangular
from .decomposition import _column_major, _solve_triangular
from .rearranging import lower_triangle, upper_triangle


def _flat(a: Any, trailing: int = 2) -> Any:
    """The array with its batch dimensions as one."""
    return np.ascontiguousarray(a).reshape(prod(a.shape[:a.ndim - trailing]), *a.shape[a.ndim - trailing:])


def _substitute_units(a: Any, b: Any) -> Any:
    return solve_triangular(a, b, False, True)


def _lu_factor(a: Any, pivot: bool) -> tuple[Any, Any, Any]:
    if not pivot and a.size:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    lu, pivots, info = kernels.lu(_flat(a), eliminate_panels, _substitute_units)
    lead = a.shape[:-2]
    return _column_major(lu.reshape(a.shape)), pivots.reshape(*lead, pivots.shape[-1]), info.reshape(lead)


def _lu(a: Any, pivot: bool) -> tuple[Any, Any, Any]:
    lu, pivots, _ = _lu_factor(a, pivot)
    p, low, up = _lu_unpack(lu, pivots, True, True)
    return (p if pivot else np.empty(0, a.dtype)), low, up


def _lu_unpack(lu: Any, pivots: Any, unpack_data: bool, unpack_pivots: bool) -> tuple[Any, Any, Any]:
    m, n = lu.shape[-2:]
    k = min(m, n)
    empty = np.empty(0, lu.dtype)
    p, low, up = empty, empty, empty
    if unpack_pivots:
        p = np.zeros((*lu.shape[:-2], m, m), lu.dtype)
        flat = p.reshape(-1, m, m) if p.size else np.empty((0, m, m), lu.dtype)
        rows = _flat(pivots, 1).astype(np.int64) - 1
        if len(flat) and k:
            if rows.size and (rows.min() < 0 or rows.max() >= m):
                raise RuntimeError("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you "
                                   "properly pass the result of lu_factor?")
            rows = np.broadcast_to(rows, (len(flat), rows.shape[-1]))
            order = kernels.permutation(rows, m)
            np.put_along_axis(flat, order[:, None, :], 1, 1)
        elif len(flat):
            flat[...] = np.eye(m, dtype=lu.dtype)
    if unpack_data:
        low = lower_triangle(lu[..., :k], -1)
        low[..., range(k), range(k)] = 1
        up = upper_triangle(lu[..., :k, :])
    return p, np.ascontiguousarray(low), np.ascontiguousarray(up)


def _lu_solve(lu: Any, pivots: Any, b: Any, left: bool, adjoint: bool) -> Any:
    if not left:  # X A = B is Aᴴ Xᴴ = Bᴴ
        x = _lu_solve(lu, pivots, b.swapaxes(-1, -2).conj(), True, not adjoint)
        return np.ascontiguousarray(x.swapaxes(-1, -2).conj())
    p = _lu_unpack(lu, pivots, False, True)[0]
    lu = lu if lu.flags.c_contiguous else np.ascontiguousarray(lu)
    if adjoint:
        lu_h = lu.swapaxes(-1, -2).conj()
        x = _solve_triangular(lu_h, b, False, True, False)
        return _column_major(np.matmul(p, _solve_triangular(lu_h, x, True, True, True)))
    x = _solve_triangular(lu, np.matmul(p.swapaxes(-1, -2), b), False, True, True)
    return _solve_triangular(lu, x, True, True, False)


def _ldl_factor(a: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    ld, pivots, info = kernels.ldl(_flat(a), hermitian)
    return _column_major(ld.reshape(a.shape)), pivots.reshape(a.shape[:-1]), info.reshape(a.shape[:-2])


def _ldl_solve(ld: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    lead = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    ld, b = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (ld, b))
    pivots = np.broadcast_to(pivots, (*lead, pivots.shape[-1]))
    return _column_major(kernels.ldl_solve(_flat(ld), _flat(pivots, 1), _flat(b), hermitian).reshape(b.shape))


def _geqrf(a: Any) -> tuple[Any, Any]:
    if not a.size:
        return a.copy(), np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    transposed, tau = np.linalg.qr(a, "raw")
    return _column_major(transposed.swapaxes(-1, -2)), tau


def _householder_product(a: Any, tau: Any) -> Any:
    c = np.zeros(a.shape, a.dtype)
    n = a.shape[-1]
    c[..., range(n), range(n)] = 1
    return _apply(a, tau, c, False)


def _apply(a: Any, tau: Any, c: Any, adjoint: bool) -> Any:
    return _column_major(kernels.apply_reflectors(_flat(a), _flat(tau, 1), _flat(c), adjoint).reshape(c.shape))


def _multiply_by_q(a: Any, tau: Any, c: Any, left: bool, transpose: bool) -> Any:
    if left:
        return _apply(a, tau, c, transpose)
    product = _apply(a, tau, c.swapaxes(-1, -2).conj(), not transpose)
    return _column_major(product.swapaxes(-1, -2).conj())


PRIMITIVES: dict[str, Any] = {
    "lu": _lu, "lu_factor": _lu_factor, "lu_unpack": _lu_unpack, "lu_solve": _lu_solve,
    "ldl_factor": _ldl_factor, "ldl_solve": _ldl_solve,
    "geqrf": _geqrf, "householder_product": _householder_product, "multiply_by_q": _multiply_by_q,
}
