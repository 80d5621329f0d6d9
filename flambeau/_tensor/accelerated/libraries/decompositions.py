"""Eigenvalues and singular values on a device by cuSOLVER, and matrix functions that follow from them."""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np

from ....backends.cuda_devices import current_runtime
from ....backends.cuda_devices.array import DeviceArray
from ....dtypes import of
from .factorizations import det
from .matrices import INT32, batched, new_column_major, read, real_dtype, vectors
from .namespace import DeviceNamespace, primitive
from .solutions import inv, solve

#: rows and columns up to which one launch decomposes a batch
_SMALL = 32


def _check_converged(xp: DeviceNamespace, info: DeviceArray, name: str, text: str) -> None:
    """Read whether methods converged, for which the host waits, as PyTorch's does.

    Raises:
        LinAlgError: one has not (PyTorch's text).
    """
    found = read(info)
    if found.any():
        at = int(found.nonzero()[0][0])
        where = f"(Batch element {at}): " if found.size > 1 else ""
        raise np.linalg.LinAlgError(f"{name}: {where}{text} (error code: {int(found[at])}).")


@primitive
def eigh(xp: DeviceNamespace, a: DeviceArray, uplo: str = "L") -> Any:
    """Eigenvalues in ascending order, and eigenvectors, of Hermitian matrices.

    Raises:
        RuntimeError: `uplo` is none (PyTorch's text).
    """
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")
    lead, n = a.shape[:-2], a.shape[-1]
    eigenvectors, values = xp.column_major(a), vectors(xp, lead, n, real_dtype(a))
    info = xp.empty((len(eigenvectors),), INT32)
    current_runtime().linear_algebra.syevd(eigenvectors, values, uplo in "Uu", info)
    _check_converged(xp, info, "linalg.eigh", "The algorithm failed to converge because the input matrix is "
                     "ill-conditioned or has too many repeated eigenvalues")
    return values.reshape(*lead, n), batched(eigenvectors, lead)


@primitive
def svd(xp: DeviceNamespace, a: DeviceArray, full_matrices: bool = True) -> Any:
    """U, S and Vᴴ, by Jacobi rotations; by QR iterations where these do not converge."""
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    k = min(m, n)
    matrices = xp.column_major(a)
    count = len(matrices)
    one_launch = count > 1 and max(m, n) <= _SMALL
    whole = full_matrices or one_launch or (m == n)
    u = new_column_major(xp, count, m, m if whole else k, a.dtype)
    v = new_column_major(xp, count, n, n if whole else k, a.dtype)
    values, info = vectors(xp, lead, k, real_dtype(a)), xp.empty((count,), INT32)
    current_runtime().linear_algebra.gesvdj(matrices, values, u, v, info)
    if read(info).any():
        return _svd_by_iterations(xp, a, full_matrices)
    if not full_matrices:
        u, v = u[..., :k], v[..., :k]
    vh = xp.conjugate(xp.column_major(v.swapaxes(-1, -2)))
    u = u if u.swapaxes(-1, -2).flags.c_contiguous else xp.column_major(u)
    return batched(u, lead), values.reshape(*lead, k), batched(vh, lead)


def _svd_by_iterations(xp: DeviceNamespace, a: DeviceArray, full_matrices: bool) -> Any:
    """U, S and Vᴴ by QR iterations, of the conjugate transpose where that is taller."""
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    if m < n:
        v, values, uh = _svd_by_iterations(xp, _adjoint(xp, a), full_matrices)
        return _adjoint(xp, uh), values, _adjoint(xp, v)
    matrices = xp.column_major(a)
    count = len(matrices)
    u = new_column_major(xp, count, m, m if full_matrices else n, a.dtype)
    vh, values = new_column_major(xp, count, n, n, a.dtype), vectors(xp, lead, n, real_dtype(a))
    info = xp.empty((count,), INT32)
    current_runtime().linear_algebra.gesvd(matrices, values, u, vh, info)
    _check_converged(xp, info, "linalg.svd", "The algorithm failed to converge because the input matrix is "
                     "ill-conditioned or has too many repeated singular values")
    return batched(u, lead), values.reshape(*lead, n), batched(vh, lead)


def _adjoint(xp: DeviceNamespace, a: DeviceArray) -> DeviceArray:
    return batched(xp.conjugate(xp.column_major(a.swapaxes(-1, -2))), a.shape[:-2])


@primitive
def pinv(xp: DeviceNamespace, a: DeviceArray, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """Pseudoinverses; singular values up to max(atol, rtol · σ₁) count as 0."""
    if hermitian:
        values, u = eigh(xp, a, "L")
        size, vh = xp.abs(values), _adjoint(xp, u)
    else:
        u, values, vh = svd(xp, a, False)
        size = values
    largest = xp.amax(size, dim=(-1,), keepdim=True)
    limit = xp.mul(largest, rtol if isinstance(rtol, (int, float)) else _on_device(xp, rtol, largest)[..., None])
    limit = xp.maximum(limit, xp.full_like_number(limit, atol) if isinstance(atol, (int, float)) else _on_device(
        xp, atol, largest)[..., None])
    kept = xp.gt(size, limit)
    inverse = xp.where(kept, xp.reciprocal(values), xp.full_like_number(values, 0.0))
    return xp.matmul(xp.mul(_adjoint(xp, vh), inverse[..., None, :]), _adjoint(xp, u))


def _on_device(xp: DeviceNamespace, x: Any, like: DeviceArray) -> DeviceArray:
    """A tolerance as an array of the device, of a dtype."""
    if x.__class__ is not DeviceArray:
        made: DeviceArray = current_runtime().upload(np.asarray(x).astype(like.dtype), xp.device)
        return made
    found: DeviceArray = x if x.dtype == like.dtype else xp._to_copy(x, dtype=of(like.dtype), memory_format=None)
    return found


@primitive
def full_like_number(xp: DeviceNamespace, a: DeviceArray, number: float) -> DeviceArray:
    """An array of a shape and dtype, all of a number."""
    made = xp.empty(a.shape, a.dtype)
    xp.fill(made, number)
    return made


# ----- gradients of determinants -----


@primitive
def _cofactors(xp: DeviceNamespace, a: DeviceArray, determinant: DeviceArray) -> Any:
    """det(A) A⁻ᵀ: by the inverse where all matrices are well-conditioned, otherwise by the SVD.

    The latter gives products of all singular values but one, which are defined for singular matrices, too. The host
    reads which.
    """
    inverse, info = inv(xp, a)
    if not read(info).any():
        condition = read(xp.mul(_largest(xp, a), _largest(xp, inverse))) * a.shape[-1]
        if (condition < 1e-3 / np.finfo(a.dtype).eps).all() and np.isfinite(read(determinant)).all():
            return xp.mul(determinant[..., None, None], inverse.swapaxes(-1, -2))
    u, s, vh = svd(xp, a, True)
    n = s.shape[-1]
    one = current_runtime().upload(np.eye(n, dtype=bool), xp.device)
    rest = xp.prod_last(xp.where(one, xp.full_like_number(s, 1.0)[..., None, :], s[..., None, :]))
    return _between(xp, u, vh, rest)


def _largest(xp: DeviceNamespace, a: DeviceArray) -> Any:
    return xp.amax(xp.abs(a), dim=(-2, -1), keepdim=False)


def _between(xp: DeviceNamespace, u: DeviceArray, vh: DeviceArray, rest: DeviceArray) -> Any:
    phase = xp.mul(det(xp, u), det(xp, vh))
    scaled = xp.mul(xp.conjugate(xp.copy(u)), rest[..., None, :])
    return xp.mul(phase[..., None, None], xp.matmul(scaled, xp.conjugate(xp.copy(vh))))


# ----- the exponential -----

#: coefficients of the Padé approximant of order 13, and the norm up to which it has double precision
_PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
         670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)
_PADE_MAX_NORM = 4.25


@primitive
def matrix_exp(xp: DeviceNamespace, a: DeviceArray) -> Any:
    """exp(A) in double precision by scaling and squaring with a Padé approximant; the host reads the largest norm."""
    kind = of(np.result_type(a.dtype, np.float64))
    wide = a if a.dtype == kind.numpy else xp._to_copy(a, dtype=kind, memory_format=None)
    norm = float(read(xp.amax(xp.sum(xp.abs(wide), dim=(-2,), keepdim=False, dtype=None), dim=(), keepdim=False)))
    squarings = max(0, ceil(log2(norm / _PADE_MAX_NORM))) if 0 < norm < np.inf else 0
    x = xp.mul(wide, 2.0 ** -squarings)
    x2 = xp.matmul(x, x)
    x4 = xp.matmul(x2, x2)
    x6 = xp.matmul(x4, x2)
    b = [float(each) for each in _PADE]
    eye = current_runtime().upload(np.eye(a.shape[-1], dtype=wide.dtype), xp.device)

    def combined(*terms: tuple[float, Any]) -> Any:
        total = None
        for factor, matrix in terms:
            scaled = xp.mul(matrix, factor)
            total = scaled if total is None else xp.add(total, scaled)
        return total

    odd = xp.matmul(x6, combined((b[13], x6), (b[11], x4), (b[9], x2)))
    odd = xp.matmul(x, xp.add(odd, combined((b[7], x6), (b[5], x4), (b[3], x2), (b[1], eye))))
    even = xp.matmul(x6, combined((b[12], x6), (b[10], x4), (b[8], x2)))
    even = xp.add(even, combined((b[6], x6), (b[4], x4), (b[2], x2), (b[0], eye)))
    result, _ = solve(xp, xp.sub(even, odd), xp.add(even, odd))
    for _ in range(squarings):
        result = xp.matmul(result, result)
    dense = xp.copy(result)
    return dense if dense.dtype == a.dtype else xp._to_copy(dense, dtype=of(a.dtype), memory_format=None)
