"""Linear algebra on arrays by NumPy's LAPACK; matrices in results are column-major, as LAPACK returns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...kernels import factorization, lapack
from ...kernels.memory_format import note_layout, noted
from ...shapes import are_vectors
from ..compiled import solve_triangular
from .rearranging import lower_triangle, upper_triangle


def _column_major(x: Any) -> Any:
    """Return a column-major copy."""
    rows = x.swapaxes(-1, -2)
    # NumPy takes vectors for contiguous whatever the stride of their dimension of size 1
    columns = np.array(rows, order="C") if 1 in rows.shape[-2:] else np.ascontiguousarray(rows)
    return noted(columns.swapaxes(-1, -2))


def _fallen(result: Any) -> Any:
    """The positions of matrices that have NaN, in a batch of one dimension: LAPACK failed there, or was given NaN."""
    return np.flatnonzero(np.isnan(result).any((-1, -2)))


def _inv(a: Any) -> tuple[Any, Any]:
    return _solutions(lapack.inv, (a,), None, True)


def _solutions(function: Any, operands: tuple[Any, ...], b: Any, left: bool) -> tuple[Any, Any]:
    """Return LAPACK's solutions with right-hand sides B, by elimination where it fails, and the info codes.

    Elimination divides by pivots that are 0, so that solutions of singular systems are infinite or NaN.

    Args:
        function: one of `kernels.lapack`.
        operands: its arguments, the matrices A first.
        b: the right-hand sides; None for the identity.
        left: whether the operator's matrices are A; otherwise they are Aᵀ, whose LU factors PyTorch uses.
    """
    found = _column_major(lapack.each_or_nan(function, *operands))
    n, k = found.shape[-2:]
    lead = found.shape[:-2]
    info = np.zeros(lead, np.int32)
    total = np.add.reduce(found, None)  # NaN if one is
    if total != total and np.isnan(found).any():
        b = np.eye(n, dtype=found.dtype) if b is None else b
        rows = [np.broadcast_to(x, (*lead, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in (operands[0], b)]
        flat = found.reshape(-1, n, k)
        at = _fallen(flat)
        matrices = rows[0][at] if left else rows[0][at].swapaxes(-1, -2)
        flat[at], codes = factorization.solve(matrices, rows[1][at], not left)
        info.reshape(-1)[at] = codes
        found = _column_major(flat.reshape(found.shape))
    return found, info


def _solve(a: Any, b: Any, left: bool) -> tuple[Any, Any]:
    vector = are_vectors(a.shape, b.shape)
    right = b[..., None] if vector else b
    n = a.shape[-1]
    if right.shape[-2 if left else -1] != n:
        raise RuntimeError("linalg.solve: Incompatible shapes of A and B for the equation "
                           f"{'AX' if left else 'XA'} = B ({n}x{n} and {right.shape[-2]}x{right.shape[-1]})")
    if not left:
        if vector:
            raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for "
                               "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)")
        a, right = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
    x, info = _solutions(lapack.solve, (a, right), right, left)
    if info.shape != a.shape[:-2]:  # B has the larger batch: one code for each matrix of A
        extra = info.ndim - (a.ndim - 2)
        info = info[(0,) * extra]
        info = info[tuple(slice(0, size) for size in a.shape[:-2])].copy()
    if not left:
        return np.ascontiguousarray(x.swapaxes(-1, -2)), info
    return (x[..., 0] if vector else x), info


def _triangle(a: Any, upper: bool, unitriangular: bool) -> Any:
    a = upper_triangle(a) if upper else lower_triangle(a)
    if unitriangular:
        n = a.shape[-1]
        a[..., range(n), range(n)] = 1
    return a


def _solve_triangular(a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    if b.dtype != a.dtype:
        b = dtypes.cast(b.real if a.dtype.kind != "c" else b, a.dtype)
    if not left:
        transposed = _solve_triangular(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True, unitriangular)
        return _column_major(transposed.swapaxes(-1, -2))
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError("linalg.solve_triangular: Incompatible shapes of A and B for the equation AX = B "
                           f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})")
    solution = solve_triangular(a, b, upper, unitriangular)
    if solution is not None:
        return _column_major(solution)
    a = _triangle(a, upper, unitriangular)
    try:
        return _column_major(lapack.solve(a, b))
    except np.linalg.LinAlgError:
        return _column_major(_substitute(a, b, upper))


def _substitute(a: Any, b: Any, upper: bool) -> Any:
    """Solve by substitution, for singular triangular matrices: division by 0 gives inf or nan."""
    n = a.shape[-1]
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])))
    for i in reversed(range(n)) if upper else range(n):
        done = slice(i + 1, n) if upper else slice(0, i)
        x[..., i, :] -= np.matmul(a[..., i:i + 1, done], x[..., done, :])[..., 0, :]
        x[..., i, :] /= a[..., i, i, None]
    return x


def _pinv(a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    a = lapack.in_rows(a)
    if hermitian:
        values, vectors = lapack.eigh(a)
        size = np.abs(values)
        u, vh = vectors, vectors.swapaxes(-1, -2).conj()
    else:
        u, values, vh = np.linalg.svd(a, full_matrices=False)
        size = values
    limit = np.maximum(atol, rtol * size.max(-1))[..., None]
    inverse = np.where(size > limit, 1 / np.where(size > limit, values, 1), 0).astype(values.dtype)
    return np.matmul(vh.swapaxes(-1, -2).conj() * inverse[..., None, :], u.swapaxes(-1, -2).conj())


def _check_full_rank(rank: Any, full: int) -> None:
    """Check the ranks of matrices.

    Raises:
        LinAlgError: one is not `full` (PyTorch's text).
    """
    deficient = np.flatnonzero(rank != full)
    if deficient.size:
        at = int(deficient[0])
        where = f"(Batch element {at}): " if rank.ndim else ""
        raise np.linalg.LinAlgError(f"torch.linalg.lstsq: {where}The least squares solution could not be computed "
                                    "because the input matrix does not have full rank (error code: "
                                    f"{int(rank.reshape(-1)[at]) + 1}).")


def _leading_columns(a: Any, rcond: float) -> tuple[Any, int]:
    """Return the order of columns of a QR decomposition with pivoting, and the rank by the leading blocks of R.

    The rank is the size of the largest leading block with σ_min >= rcond · σ_max, which LAPACK's gelsy estimates.
    """
    r, order = a.copy(), np.arange(a.shape[1])
    for k in range(min(a.shape)):
        at = k + int(np.argmax(np.add.reduce(np.abs(r[k:, k:]) ** 2, 0)))
        r[:, [k, at]], order[[k, at]] = r[:, [at, k]], order[[at, k]]
        v = r[k:, k].copy()
        length = np.linalg.norm(v)
        if not length:
            break
        v[0] += length * (v[0] / abs(v[0]) if v[0] else 1)
        v /= np.linalg.norm(v)
        r[k:, k:] -= 2 * np.multiply.outer(v, v.conj() @ r[k:, k:])
    rank = 0
    for k in range(1, min(a.shape) + 1):
        values = np.linalg.svd(r[:k, :k], compute_uv=False)
        if not values[0] or (k > 1 and values[-1] < rcond * values[0]):
            break
        rank = k
    return order, rank


def _truncated_solution(a: Any, b: Any, rcond: float) -> tuple[Any, int]:
    """Return the solution of least norm of gelsy, which ignores all but the leading rows of R, and the rank."""
    order, rank = _leading_columns(a, rcond)
    q = np.linalg.qr(a[:, order])[0][:, :rank]
    rows = q.conj().T @ a[:, order]
    x = np.zeros((a.shape[1], b.shape[1]), a.dtype)
    x[order] = np.linalg.pinv(rows) @ (q.conj().T @ b)
    return x, rank


def _lstsq(a: Any, b: Any, rcond: float, driver: str) -> tuple[Any, Any, Any, Any]:
    vector = are_vectors(a.shape, b.shape)
    right = b[..., None] if vector else b
    m, n = a.shape[-2:]
    real = a.real.dtype
    epsilon = float(np.finfo(real).eps)
    if rcond < 0 or (driver == "gelsd" and rcond >= 1):
        rcond = epsilon
    elif driver == "gels":
        rcond = epsilon * max(m, n)
    values = np.linalg.svd(a, compute_uv=False) if a.size else np.zeros((*a.shape[:-2], min(m, n)), real)
    limit = np.asarray(rcond, real) * (values[..., :1] if values.shape[-1] else 0)
    rank = np.asarray(np.add.reduce(values > limit, -1, dtype=np.int64))
    if driver == "gels":
        _check_full_rank(rank, min(m, n))
    x = np.matmul(_pinv(a, 0.0, rcond, False), right)
    if driver == "gelsy" and a.size and (rank != min(m, n)).any():
        batch = x.shape[:-2]
        sides = np.broadcast_to(a, (*batch, m, n)), np.broadcast_to(right, (*batch, *right.shape[-2:]))
        rank = np.broadcast_to(rank, batch).copy()
        for at in np.ndindex(*batch):
            x[at], rank[at] = _truncated_solution(sides[0][at], sides[1][at], rcond)
    residuals = np.zeros(0, real)
    if m > n and driver != "gelsy" and (rank == n).all():
        left = np.matmul(a, x) - right
        residuals = np.add.reduce((left * left.conj()).real, -2)
    return (x[..., 0] if vector else _column_major(x), residuals,
            np.zeros(0, np.int64) if driver == "gels" else rank,
            values if driver in ("gelsd", "gelss") else np.zeros(0, real))


def _det(a: Any) -> Any:
    return np.asarray(lapack.det(a), a.dtype)


def _cofactors(a: Any, determinant: Any) -> Any:
    """Return det(A) A⁻ᵀ: by the inverse where all matrices are well-conditioned, otherwise by the SVD.

    The latter gives products of all singular values but one, which are defined for singular matrices, too.
    """
    if not a.size:
        return np.zeros_like(a)
    try:
        inverse = lapack.inv(a)
    except np.linalg.LinAlgError:
        inverse = None
    if inverse is not None:
        condition = np.abs(a).max((-1, -2)) * np.abs(inverse).max((-1, -2)) * a.shape[-1]
        if (condition < 1e-3 / np.finfo(a.dtype).eps).all() and np.isfinite(determinant).all():
            cofactors = np.asarray(determinant)[..., None, None] * inverse.swapaxes(-1, -2)
            note_layout(cofactors)
            return cofactors
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    rest = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    phase = lapack.det(u) * lapack.det(vh)
    return (phase[..., None, None] * np.matmul(u.conj() * rest[..., None, :], vh.conj())).astype(a.dtype)


def _cofactors_backward(g: Any, a: Any, determinant: Any) -> Any:
    """Return the gradient by A of the cofactors, by products of all singular values but two.

    In the basis of the singular vectors, the derivative of the cofactor (i, j) is - B[j, i] Π s[k], k not i nor j, and
    that of (i, i) the sum over the other k of B[k, k] Π s[l], l not i nor k.
    """
    if not a.size:
        return np.zeros_like(a)
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    one = np.eye(n, dtype=bool)
    rest = np.where(one[:, None] | one[None], 1, s[..., None, None, :]).prod(-1) * ~one
    phase = lapack.det(u) * lapack.det(vh)
    inner = phase[..., None, None] * np.matmul(np.matmul(u.conj().swapaxes(-1, -2), g), vh.conj().swapaxes(-1, -2))
    gradient = -(inner * rest).swapaxes(-1, -2)
    diagonal = np.matmul(rest, np.diagonal(inner, axis1=-2, axis2=-1)[..., None])
    gradient += np.where(one, diagonal, 0)
    return np.matmul(np.matmul(u.conj(), gradient), vh.conj()).astype(a.dtype)


def _slogdet(a: Any) -> tuple[Any, Any]:
    sign, logarithm = np.linalg.slogdet(lapack.in_rows(a))
    return np.asarray(sign, a.dtype), np.asarray(logarithm)


def _cholesky(a: Any, upper: bool) -> tuple[Any, Any]:
    if upper:
        low, info = _cholesky(a.swapaxes(-1, -2).conj(), False)
        return _column_major(low.swapaxes(-1, -2).conj()), info
    low = _column_major(lapack.each_or_nan(lapack.cholesky, a))
    info = np.zeros(a.shape[:-2], np.int32)
    if low.size and np.isnan(low[..., -1, -1]).any():  # where one pivot is NaN, so is the last one
        flat, matrices, codes = low.reshape(-1, *a.shape[-2:]), a.reshape(-1, *a.shape[-2:]), info.reshape(-1)
        for i in np.flatnonzero(np.isnan(flat[:, -1, -1])):
            flat[i], codes[i] = factorization.leading_cholesky(matrices[i])
        low = _column_major(flat.reshape(a.shape))
    return low, info


def _cholesky_solve(b: Any, low: Any, upper: bool = False) -> Any:
    low = _triangle(low, upper, False)
    low_h = low.swapaxes(-1, -2).conj()
    return _column_major(lapack.solve(np.matmul(low_h, low) if upper else np.matmul(low, low_h), b))


def _cholesky_inverse(low: Any, upper: bool = False) -> Any:
    low = _triangle(low, upper, False)
    low_h = low.swapaxes(-1, -2).conj()
    return _column_major(lapack.inv(np.matmul(low_h, low) if upper else np.matmul(low, low_h)))


def _qr(a: Any, mode: str) -> tuple[Any, Any]:
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")
    if mode == "r":
        return np.empty(0, a.dtype), _column_major(np.linalg.qr(a, "r"))
    q, r = lapack.qr(a, "reduced" if mode == "reduced" else "complete")
    return _column_major(q), _column_major(r)


def _eigh(a: Any, uplo: str) -> tuple[Any, Any]:
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")
    values, vectors = lapack.eigh(a, "L" if uplo in "Ll" else "U")
    return values, _column_major(vectors)


def _eig(a: Any) -> tuple[Any, Any]:
    if not np.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = np.linalg.eig(lapack.in_rows(a))
    kind = np.result_type(a.dtype, np.complex64)
    return values.astype(kind, copy=False), _column_major(vectors.astype(kind, copy=False))


def _svd(a: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    u, s, vh = lapack.svd(a, full_matrices)
    return _column_major(u), s, _column_major(vh)


#: coefficients of the Padé approximant of order 13, and the norm up to which it has double precision
_PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
         670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)
_PADE_MAX_NORM = 4.25


def _matrix_exp(a: Any) -> Any:
    """Return exp(A) by scaling and squaring with a Padé approximant."""
    if not a.size:
        return a.copy()
    n = a.shape[-1]
    wide = a.astype(np.result_type(a.dtype, np.float64))
    norm = np.abs(wide).sum(-2).max(-1).max()
    squarings = max(0, int(np.ceil(np.log2(norm / _PADE_MAX_NORM)))) if 0 < norm < np.inf else 0
    x = wide / 2 ** squarings
    eye = np.eye(n, dtype=x.dtype)
    b = [float(c) for c in _PADE]
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye
    out = lapack.solve(even - odd, even + odd)
    for _ in range(squarings):
        out = out @ out
    return out.astype(a.dtype)


PRIMITIVES: dict[str, Any] = {
    "lstsq": _lstsq,
    "inv": _inv, "solve": _solve, "solve_triangular": _solve_triangular, "pinv": _pinv,
    "det": _det, "_cofactors": _cofactors, "_cofactors_backward": _cofactors_backward, "slogdet": _slogdet,
    "cholesky": _cholesky, "cholesky_solve": _cholesky_solve, "cholesky_inverse": _cholesky_inverse,
    "qr": _qr, "eigh": _eigh, "eig": _eig,
    "svd": _svd, "matrix_exp": _matrix_exp,
}
