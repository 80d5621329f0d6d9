"""Inverses and solutions of linear systems on a device by cuSOLVER and cuBLAS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....backends.cuda_devices import current_runtime
from ....backends.cuda_devices.array import DeviceArray, device_array
from ....dtypes import of
from ....shapes import are_vectors
from .factorizations import lu_factor
from .matrices import INT32, batched, broadcast, lead_of, new_column_major, row_major, vectors
from .namespace import DeviceNamespace, primitive


def _identity(xp: DeviceNamespace, count: int, n: int, dtype: np.dtype) -> DeviceArray:
    """Identities, (batch, n, n) and column-major."""
    made = new_column_major(xp, count, n, n, dtype)
    xp.fill(made, 0)
    size = dtype.itemsize
    xp.fill(device_array(made.memory, (count, n), dtype, (n * n * size, (n + 1) * size), made.byte_offset), 1)
    return made


@primitive
def inv(xp: DeviceNamespace, a: DeviceArray) -> Any:
    """Inverses and `info`."""
    lead, n = a.shape[:-2], a.shape[-1]
    factors, pivots, info = xp.column_major(a), vectors(xp, lead, n, INT32), xp.empty(lead, INT32)
    solver = current_runtime().linear_algebra
    solver.getrf(factors, pivots, info.reshape(-1))
    inverse = _identity(xp, len(factors), n, a.dtype)
    solver.getrs(factors, pivots, inverse, False, False)
    return batched(inverse, lead), info


@primitive
def solve(xp: DeviceNamespace, a: DeviceArray, b: DeviceArray, left: bool = True) -> Any:
    """Solutions of A X = B, or of X A = B, and `info`.

    Raises:
        RuntimeError: the shapes do not fit (PyTorch's text).
    """
    vector = left and are_vectors(a.shape, b.shape)
    right = b[..., None] if vector else b
    n, rows = a.shape[-1], right.shape[-2 if left else -1]
    if rows != n:
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B"
                           f" ({n}x{n} and {right.shape[-2]}x{right.shape[-1]})")
    factors, pivots, info = lu_factor(xp, a, True)
    x = _by_factors(xp, factors, pivots, right, left, False)
    return (x[..., 0] if vector else x), info


def _by_factors(xp: DeviceNamespace, factors: DeviceArray, pivots: DeviceArray, b: DeviceArray, left: bool,
                adjoint: bool) -> DeviceArray:
    """Solutions by LU factors: column-major, or row-major where A is to the right.

    X A = B is Aᵀ Xᵀ = Bᵀ, and X Aᴴ = B is A conj(Xᵀ) = conj(Bᵀ).
    """
    lead, n = lead_of(factors, b), factors.shape[-1]
    sides = xp.column_major(b if left else b.swapaxes(-1, -2), lead)
    if adjoint and not left:
        xp.conjugate(sides)
    lu = _columns(xp, factors, lead)
    order = row_major(xp, broadcast(pivots, (*lead, n))).reshape(-1, n)
    current_runtime().linear_algebra.getrs(lu, order, sides, not left and not adjoint, left and adjoint)
    if adjoint and not left:
        xp.conjugate(sides)
    found = batched(sides, lead)
    return found if left else found.swapaxes(-1, -2)


@primitive
def lu_solve(xp: DeviceNamespace, lu: DeviceArray, pivots: DeviceArray, b: DeviceArray, left: bool = True,
             adjoint: bool = False) -> DeviceArray:
    """Solutions by compact LU factors."""
    return _by_factors(xp, lu, pivots, b, left, adjoint)


@primitive
def solve_triangular(xp: DeviceNamespace, a: DeviceArray, b: DeviceArray, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> DeviceArray:
    """Solutions with triangular A.

    Raises:
        RuntimeError: the shapes do not fit (PyTorch's text).
    """
    if b.dtype != a.dtype:
        b = xp._to_copy(b, dtype=of(a.dtype), memory_format=None)
    if not left:
        found = solve_triangular(xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True, unitriangular)
        return _column_major(xp, found.swapaxes(-1, -2))
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError("linalg.solve_triangular: Incompatible shapes of A and B for the equation AX = B "
                           f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})")
    lead = lead_of(a, b)
    sides = xp.column_major(b, lead)
    if a.flags.c_contiguous and a.shape[:-2] == lead:  # its transpose is column-major
        factors, transposed = a.reshape(-1, *a.shape[-2:]).swapaxes(-1, -2), True
    else:
        factors, transposed = _columns(xp, a, lead), False
    current_runtime().linear_algebra.trsm(factors, sides, upper != transposed, False, unitriangular, transposed)
    return batched(sides, lead)


def _columns(xp: DeviceNamespace, a: DeviceArray, lead: Sequence[int]) -> DeviceArray:
    """A batch (batch, m, n) of column-major matrices, broadcast: the array itself if it is that."""
    rows = a.swapaxes(-1, -2)
    if a.shape[:-2] == tuple(lead) and rows.flags.c_contiguous:
        return rows.reshape(-1, *rows.shape[-2:]).swapaxes(-1, -2)
    return xp.column_major(a, lead)


def _column_major(xp: DeviceNamespace, a: DeviceArray) -> DeviceArray:
    return batched(xp.column_major(a), a.shape[:-2])


def _by_cholesky(xp: DeviceNamespace, low: DeviceArray, sides: DeviceArray, upper: bool, lead: Sequence[int]) -> None:
    """Solve with A given by its factor, over column-major right-hand sides."""
    factor = _columns(xp, low, lead)
    solver = current_runtime().linear_algebra
    solver.trsm(factor, sides, upper, upper, False)
    solver.trsm(factor, sides, upper, not upper, False)


@primitive
def cholesky_solve(xp: DeviceNamespace, b: DeviceArray, low: DeviceArray, upper: bool = False) -> DeviceArray:
    """Solutions by Cholesky factors."""
    lead = lead_of(low, b)
    sides = xp.column_major(b, lead)
    _by_cholesky(xp, low, sides, upper, lead)
    return batched(sides, lead)


@primitive
def cholesky_inverse(xp: DeviceNamespace, low: DeviceArray, upper: bool = False) -> DeviceArray:
    """Inverses by Cholesky factors."""
    lead, n = low.shape[:-2], low.shape[-1]
    count = low.size // max(n * n, 1)
    inverse = _identity(xp, count, n, low.dtype)
    _by_cholesky(xp, low, inverse, upper, lead)
    return batched(inverse, lead)


@primitive
def matmul(xp: DeviceNamespace, a: DeviceArray, b: DeviceArray) -> Any:
    """Products of batches of matrices."""
    if a.ndim == b.ndim == 2:
        return xp.mm(a, b)
    lead = lead_of(a, b)
    product = xp.bmm(*(_flat(xp, each, lead) for each in (a, b)))
    return product.reshape(*lead, a.shape[-2], b.shape[-1])


def _flat(xp: DeviceNamespace, a: DeviceArray, lead: Sequence[int]) -> DeviceArray:
    """A batch of matrices (batch, m, n), broadcast; a copy where strides do not tell it."""
    a = broadcast(a, (*lead, *a.shape[-2:]))
    if len(lead) == 1:
        return a
    if not a.flags.c_contiguous and a.swapaxes(-1, -2).flags.c_contiguous:
        return a.swapaxes(-1, -2).reshape(-1, a.shape[-1], a.shape[-2]).swapaxes(-1, -2)
    return row_major(xp, a).reshape(-1, *a.shape[-2:])
