"""LAPACK through NumPy's generalized ufuncs: what `np.linalg` computes, without its ten microseconds of checks.

float32 is computed in double precision, as by `np.linalg`. Where a result has NaN, which is how the ufuncs say that a
matrix is singular or that nothing converged, where arrays have other dtypes or shapes, or where NumPy lacks the ufuncs,
`np.linalg` itself is called, which raises its errors. Kernels run in the quiet context, so that there are no warnings.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

try:
    from numpy.linalg import _umath_linalg as ufuncs
except ImportError:  # another version of NumPy
    ufuncs = None  # type: ignore[assignment]

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_sum = np.add.reduce
LinAlgError = np.linalg.LinAlgError


def is_plain(a: Any) -> bool:
    """Whether an array is one of float32 or float64 matrices with elements, which the ufuncs take."""
    return (ufuncs is not None and a.__class__ is np.ndarray and (a.dtype is _F32 or a.dtype is _F64)
            and a.ndim > 1 and a.size > 0)


def is_square(a: Any) -> bool:
    """Whether such matrices are square."""
    return is_plain(a) and bool(a.shape[-1] == a.shape[-2])


def in_rows(a: Any) -> Any:
    """A batch of matrices in row-major order: NumPy's results would have the order of the batch, PyTorch's have not."""
    return a if a.ndim < 3 or a.flags.c_contiguous else np.ascontiguousarray(a)


def _failed(result: Any) -> bool:
    total = _sum(result, None)
    return bool(total != total)


@functools.lru_cache(256)
def _upper(rows: int, columns: int) -> Any:
    return ~np.tri(rows, columns, -1, bool)


def each_or_nan(function: Any, a: Any, *others: Any) -> Any:
    """The result of a function of one matrix for each of A, or NaN for those where it fails.

    Args:
        a, others: batches of matrices, which broadcast.
    """
    try:
        return function(a, *others)
    except LinAlgError:
        pass
    arrays = [a, *others]
    lead = np.broadcast_shapes(*(each.shape[:-2] for each in arrays))
    each_matrix = [np.broadcast_to(each, (*lead, *each.shape[-2:])) for each in arrays]
    result = np.full((*lead, *arrays[-1].shape[-2:]), np.nan, a.dtype)
    for at in np.ndindex(*lead):
        try:
            result[at] = function(*(each[at] for each in each_matrix))
        except LinAlgError:
            continue
    return result


def inv(a: Any) -> Any:
    """Inverses."""
    if is_square(a):
        result = ufuncs.inv(a, signature="d->d")
        if not _failed(result):
            return result.astype(a.dtype, copy=False)
    return np.linalg.inv(a)


def solve(a: Any, b: Any) -> Any:
    """Solutions of systems with matrices as right-hand sides."""
    if is_square(a) and is_plain(b) and a.dtype is b.dtype and a.shape[-1] == b.shape[-2] and (
            a.shape[:-2] == b.shape[:-2]):
        result = ufuncs.solve(a, b, signature="dd->d")
        if not _failed(result):
            return result.astype(a.dtype, copy=False)
    return np.linalg.solve(a, b)


def cholesky(a: Any) -> Any:
    """Lower Cholesky factors."""
    if is_square(a):
        result = ufuncs.cholesky_lo(a, signature="d->d")
        if not _failed(result):
            return result.astype(a.dtype, copy=False)
    return np.linalg.cholesky(a)


def eigh(a: Any, uplo: Any = "L") -> Any:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    a = in_rows(a)
    if is_square(a):
        values, vectors = (ufuncs.eigh_lo if uplo == "L" else ufuncs.eigh_up)(a, signature="d->dd")
        if not _failed(values):
            return values.astype(a.dtype, copy=False), vectors.astype(a.dtype, copy=False)
    return np.linalg.eigh(a, uplo)


def eigvalsh(a: Any, uplo: Any = "L") -> Any:
    """Eigenvalues of symmetric matrices."""
    a = in_rows(a)
    if is_square(a):
        values = (ufuncs.eigvalsh_lo if uplo == "L" else ufuncs.eigvalsh_up)(a, signature="d->d")
        if not _failed(values):
            return values.astype(a.dtype, copy=False)
    return np.linalg.eigvalsh(a, uplo)


def svdvals(a: Any) -> Any:
    """Singular values."""
    a = in_rows(a)
    if is_plain(a):
        values = ufuncs.svd(a, signature="d->d")
        if not _failed(values):
            return values.astype(a.dtype, copy=False)
    return np.linalg.svd(a, compute_uv=False)


def svd(a: Any, full_matrices: bool) -> Any:
    """Singular value decompositions."""
    a = in_rows(a)
    if is_plain(a):
        u, s, vh = (ufuncs.svd_f if full_matrices else ufuncs.svd_s)(a, signature="d->ddd")
        if not _failed(s):
            return u.astype(a.dtype, copy=False), s.astype(a.dtype, copy=False), vh.astype(a.dtype, copy=False)
    return np.linalg.svd(a, full_matrices=full_matrices)


def det(a: Any) -> Any:
    """Determinants."""
    a = in_rows(a)
    if is_square(a):
        return ufuncs.det(a, signature="d->d").astype(a.dtype, copy=False)
    return np.linalg.det(a)


def qr(a: Any, mode: Any) -> Any:
    """QR decompositions of `mode` "reduced" or "complete"."""
    if is_plain(a):
        m, n = a.shape[-2:]
        factors = a.astype(_F64, copy=True)
        tau = ufuncs.qr_r_raw(factors, signature="d->d")
        complete = mode == "complete" and m > n
        q = (ufuncs.qr_complete if complete else ufuncs.qr_reduced)(factors, tau, signature="dd->d")
        r = factors[..., :m if complete else min(m, n), :]
        r = np.where(_upper(r.shape[-2], n), r, 0.0)
        return q.astype(a.dtype, copy=False), r.astype(a.dtype, copy=False)
    return np.linalg.qr(a, mode)


__all__ = ["LinAlgError", "cholesky", "det", "each_or_nan", "eigh", "eigvalsh", "in_rows", "inv", "is_plain",
           "is_square", "qr", "solve", "svd", "svdvals", "ufuncs"]
