"""Factorizations on a device by cuSOLVER and cuBLAS: Cholesky, LU, QR, and what follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....backends.cuda_devices import current_runtime
from ....backends.cuda_devices.array import DeviceArray, device_array
from ....backends.cuda_devices.strided_copies import start
from ....codegen.gpu import matrices
from ....codegen.gpu.launches import DeviceLaunch
from .matrices import INT32, batched, broadcast, column_major, new_column_major, real_dtype, row_major, vectors
from .namespace import DeviceNamespace, primitive


def _transposed(a: DeviceArray) -> DeviceArray:
    return a.swapaxes(-1, -2)


@primitive
def cholesky(xp: DeviceNamespace, a: DeviceArray, upper: bool = False) -> Any:
    """Cholesky factors and `info`."""
    lead = a.shape[:-2]
    factor = xp.column_major(a)
    info = xp.empty((len(factor),), INT32)
    current_runtime().linear_algebra.potrf(factor, upper, info)
    _start(xp, matrices.clear_triangle(len(factor), factor.shape[-1], factor.dtype, not upper), factor)
    return batched(factor, lead), info.reshape(lead)


# ----- LU -----


@primitive
def lu_factor(xp: DeviceNamespace, a: DeviceArray, pivot: bool = True) -> Any:
    """Compact LU factors, pivots from 1 on, and `info`."""
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    factors = xp.column_major(a)
    info = xp.empty((len(factors),), INT32)
    pivots = vectors(xp, lead, min(m, n), INT32)
    current_runtime().linear_algebra.getrf(factors, pivots if pivot else None, info)
    if not pivot:
        current_runtime().copy_between(pivots, broadcast(xp.arange_from_one(min(m, n)), pivots.shape))
    return batched(factors, lead), pivots.reshape(*lead, min(m, n)), info.reshape(lead)


@primitive
def arange_from_one(xp: DeviceNamespace, n: int) -> DeviceArray:
    """1, 2, ..., n of int32."""
    made: DeviceArray = current_runtime().upload(np.arange(1, n + 1, dtype=np.int32), xp.device, False)
    return made


@primitive
def lu(xp: DeviceNamespace, a: DeviceArray, pivot: bool = True) -> Any:
    """P, L and U."""
    factors, pivots, _ = lu_factor(xp, a, pivot)
    p, low, up = lu_unpack(xp, factors, pivots, True, True)
    return (p if pivot else xp.empty((0,), a.dtype)), low, up


@primitive
def lu_unpack(xp: DeviceNamespace, lu: DeviceArray, pivots: DeviceArray, unpack_data: bool = True,
              unpack_pivots: bool = True) -> Any:
    """P, L and U of compact factors."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    nothing = xp.empty((0,), lu.dtype)
    p, low, up = nothing, nothing, nothing
    if unpack_pivots:
        p = _permutation_matrices(xp, pivots, lu.shape[:-2], m, lu.dtype)
    if unpack_data:
        low = row_major(xp, xp.tril(lu[..., :k], -1))
        xp.fill(_diagonal(low), 1)
        up = row_major(xp, xp.triu(lu[..., :k, :], 0))
    return p, low, up


def _diagonal(a: DeviceArray) -> DeviceArray:
    """The diagonals of matrices, a view."""
    return device_array(a.memory, (*a.shape[:-2], min(a.shape[-2:])), a.dtype,
                        (*a.strides[:-2], a.strides[-2] + a.strides[-1]), a.byte_offset)


def _permutation_matrices(xp: DeviceNamespace, pivots: DeviceArray, lead: tuple[int, ...], m: int,
                          dtype: np.dtype) -> DeviceArray:
    """P of A = P L U, (..., m, m)."""
    order = permutations(xp, pivots, m)
    result = xp.empty((*order.shape[:-1], m, m), dtype)
    xp.fill(result, 0)
    if result.size:
        _start(xp, matrices.permutation_matrices(order.size // m, m, dtype), result, order)
    if result.shape[:-2] != lead:
        result = xp.copy(broadcast(result, (*lead, m, m)))
    return result


def permutations(xp: DeviceNamespace, pivots: DeviceArray, m: int) -> DeviceArray:
    """The rows' order that swaps make, (..., m) of int32: row i of P A is row order[i] of A.

    Args:
        pivots: (..., k), from 1 on.
    """
    lead, k = pivots.shape[:-1], pivots.shape[-1]
    order = xp.empty((*lead, m), INT32)
    count = order.size // max(m, 1)
    if order.size:
        _start(xp, matrices.permutations(count, m, k), order, row_major(xp, pivots))
    return order


def _start(xp: DeviceNamespace, launch: DeviceLaunch, *arrays: DeviceArray) -> None:
    start(current_runtime(), [launch], [(each.memory, each.byte_offset) for each in arrays], xp.device)


#: rows up to which a thread computes a determinant
_MAX_ROWS = 256


@primitive
def det(xp: DeviceNamespace, a: DeviceArray) -> DeviceArray:
    """Determinants."""
    factors, pivots, _ = lu_factor(xp, a, True)
    n = a.shape[-1]
    if n <= _MAX_ROWS:
        result = xp.empty(a.shape[:-2], a.dtype)
        _start(xp, matrices.determinants(result.size, n, a.dtype), result, factors, pivots)
        return result
    found: DeviceArray = xp.mul(_parity(xp, pivots, a.dtype), xp.prod_last(xp.copy(_diagonal(factors))))
    return found


@primitive
def prod_last(xp: DeviceNamespace, a: DeviceArray) -> Any:
    """Products over the last dimension."""
    return xp.prod(a, dim=-1, keepdim=False, dtype=None)


def _parity(xp: DeviceNamespace, pivots: DeviceArray, dtype: np.dtype) -> Any:
    """1 or -1 for each batch element: an even or odd number of swaps, of the precision of a dtype."""
    swapped = xp.ne(pivots, broadcast(xp.arange_from_one(pivots.shape[-1]), pivots.shape))
    odd = xp.bitwise_and(xp.sum(swapped, dim=-1, keepdim=False, dtype=None), 1)
    sign = xp.empty(odd.shape, dtype.char.lower())
    current_runtime().copy_between(sign, xp._to_copy(odd, dtype=_of(sign.dtype), memory_format=None))
    return xp.add(xp.mul(sign, -2.0), 1.0)


def _of(dtype: np.dtype) -> Any:
    from ....dtypes import of

    return of(dtype)


@primitive
def slogdet(xp: DeviceNamespace, a: DeviceArray) -> Any:
    """Signs, and logarithms of the absolute values, of determinants."""
    factors, pivots, _ = lu_factor(xp, a, True)
    n = a.shape[-1]
    if n <= _MAX_ROWS:
        sign, logarithm = xp.empty(a.shape[:-2], a.dtype), xp.empty(a.shape[:-2], real_dtype(a))
        _start(xp, matrices.logarithms_of_determinants(sign.size, n, a.dtype), sign, logarithm, factors, pivots)
        return sign, logarithm
    diagonal = xp.copy(_diagonal(factors))
    parity = _parity(xp, pivots, a.dtype)
    logarithm = xp.sum(xp.log(xp.abs(diagonal)), dim=-1, keepdim=False, dtype=None)
    return xp.mul(parity, xp.prod_last(xp.sgn(diagonal))), logarithm


# ----- QR -----


@primitive
def geqrf(xp: DeviceNamespace, a: DeviceArray) -> Any:
    """R with reflectors below it, and their factors."""
    lead, k = a.shape[:-2], min(a.shape[-2:])
    factors, tau = xp.column_major(a), vectors(xp, a.shape[:-2], k, a.dtype)
    current_runtime().linear_algebra.geqrf(factors, tau)
    return batched(factors, lead), tau.reshape(*lead, k)


@primitive
def qr(xp: DeviceNamespace, a: DeviceArray, mode: str = "reduced") -> Any:
    """Q and R.

    Raises:
        RuntimeError: the mode is none (PyTorch's text).
    """
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    k = min(m, n)
    factors, tau = xp.column_major(a), vectors(xp, lead, k, a.dtype)
    solver = current_runtime().linear_algebra
    solver.geqrf(factors, tau)
    height = m if mode == "complete" else k
    r = column_major(xp, batched(xp.triu(factors[:, :height], 0), lead))
    if mode == "r":
        return xp.empty((0,), a.dtype), r
    width = m if mode == "complete" else k
    q = factors
    if width != n:
        q = new_column_major(xp, len(factors), m, width, a.dtype)
        present = min(n, width)
        current_runtime().copy_between(q[..., :present], factors[..., :present])
        if present < width:
            xp.fill(q[..., present:], 0)
    solver.orgqr(q, tau)
    return batched(q, lead), r


@primitive
def householder_product(xp: DeviceNamespace, a: DeviceArray, tau: DeviceArray) -> DeviceArray:
    """The first n columns of products of reflectors."""
    q = xp.column_major(a)
    factors = row_major(xp, tau)
    current_runtime().linear_algebra.orgqr(q, split_vectors(factors))
    return batched(q, a.shape[:-2])


def split_vectors(a: DeviceArray) -> DeviceArray:
    """A batch of vectors as an array of two dimensions."""
    return a.reshape(-1, a.shape[-1])


@primitive
def multiply_by_q(xp: DeviceNamespace, a: DeviceArray, tau: DeviceArray, c: DeviceArray, left: bool, transpose: bool
                  ) -> DeviceArray:
    """Products of C with the square factor Q of a QR decomposition, or with its conjugate transpose."""
    product = xp.column_major(c)
    current_runtime().linear_algebra.ormqr(xp.column_major(a), split_vectors(row_major(xp, tau)), product, left,
                                           transpose)
    return batched(product, c.shape[:-2])
