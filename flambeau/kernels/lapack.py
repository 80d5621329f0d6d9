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
    from numpy.linalg import _umath_linalg as _lapack
except ImportError:  # another version of NumPy
    _lapack = None  # type: ignore[assignment]

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_sum = np.add.reduce
LinAlgError = np.linalg.LinAlgError


def _is_plain(a: Any) -> bool:
    return (_lapack is not None and a.__class__ is np.ndarray and (a.dtype is _F32 or a.dtype is _F64)
            and a.ndim > 1 and a.size > 0)


def _is_square(a: Any) -> bool:
    return _is_plain(a) and bool(a.shape[-1] == a.shape[-2])


def _failed(result: Any) -> bool:
    total = _sum(result, None)
    return bool(total != total)


@functools.lru_cache(256)
def _upper(rows: int, columns: int) -> Any:
    return ~np.tri(rows, columns, -1, bool)


def inv(a: Any) -> Any:
    """Inverses."""
    if _is_square(a):
        result = _lapack.inv(a, signature="d->d")
        if not _failed(result):
            return result.astype(a.dtype, copy=False)
    return np.linalg.inv(a)


def solve(a: Any, b: Any) -> Any:
    """Solutions of systems with matrices as right-hand sides."""
    if _is_square(a) and _is_plain(b) and a.dtype is b.dtype and a.shape[-1] == b.shape[-2] and (
            a.shape[:-2] == b.shape[:-2]):
        result = _lapack.solve(a, b, signature="dd->d")
        if not _failed(result):
            return result.astype(a.dtype, copy=False)
    return np.linalg.solve(a, b)


def cholesky(a: Any) -> Any:
    """Lower Cholesky factors."""
    if _is_square(a):
        result = _lapack.cholesky_lo(a, signature="d->d")
        if not _failed(result):
            return result.astype(a.dtype, copy=False)
    return np.linalg.cholesky(a)


def eigh(a: Any, uplo: Any = "L") -> Any:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    if _is_square(a):
        values, vectors = (_lapack.eigh_lo if uplo == "L" else _lapack.eigh_up)(a, signature="d->dd")
        if not _failed(values):
            return values.astype(a.dtype, copy=False), vectors.astype(a.dtype, copy=False)
    return np.linalg.eigh(a, uplo)


def eigvalsh(a: Any, uplo: Any = "L") -> Any:
    """Eigenvalues of symmetric matrices."""
    if _is_square(a):
        values = (_lapack.eigvalsh_lo if uplo == "L" else _lapack.eigvalsh_up)(a, signature="d->d")
        if not _failed(values):
            return values.astype(a.dtype, copy=False)
    return np.linalg.eigvalsh(a, uplo)


def svdvals(a: Any) -> Any:
    """Singular values."""
    if _is_plain(a):
        values = _lapack.svd(a, signature="d->d")
        if not _failed(values):
            return values.astype(a.dtype, copy=False)
    return np.linalg.svd(a, compute_uv=False)


def svd(a: Any, full_matrices: bool) -> Any:
    """Singular value decompositions."""
    if _is_plain(a):
        u, s, vh = (_lapack.svd_f if full_matrices else _lapack.svd_s)(a, signature="d->ddd")
        if not _failed(s):
            return u.astype(a.dtype, copy=False), s.astype(a.dtype, copy=False), vh.astype(a.dtype, copy=False)
    return np.linalg.svd(a, full_matrices=full_matrices)


def det(a: Any) -> Any:
    """Determinants."""
    if _is_square(a):
        return _lapack.det(a, signature="d->d").astype(a.dtype, copy=False)
    return np.linalg.det(a)


def qr(a: Any, mode: Any) -> Any:
    """QR decompositions of `mode` "reduced" or "complete"."""
    if _is_plain(a):
        m, n = a.shape[-2:]
        factors = a.astype(_F64, copy=True)
        tau = _lapack.qr_r_raw(factors, signature="d->d")
        complete = mode == "complete" and m > n
        q = (_lapack.qr_complete if complete else _lapack.qr_reduced)(factors, tau, signature="dd->d")
        r = factors[..., :m if complete else min(m, n), :]
        r = np.where(_upper(r.shape[-2], n), r, 0.0)
        return q.astype(a.dtype, copy=False), r.astype(a.dtype, copy=False)
    return np.linalg.qr(a, mode)


__all__ = ["LinAlgError", "cholesky", "det", "eigh", "eigvalsh", "inv", "qr", "solve", "svd", "svdvals"]
