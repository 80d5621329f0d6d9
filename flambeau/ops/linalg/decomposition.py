"""Cholesky, QR, eigenvalue and singular value decompositions and the matrix exponential, (..., n, n) or (..., m, n).

Functions that conjugate state their derivative formulas in full (`holomorphic=False`). H is the conjugate transpose.
"""

from __future__ import annotations

from ..declare import composite, not_implemented, op
from .matrix_checks import (
    LINALG_OPTIONS,
    NO_LAPACK,
    check_batch_of_matrices,
    check_matrices,
    conj_transpose,
    transpose_last,
)

# ----- Cholesky decomposition ----------------------------------------------------


@op(outputs=("L", "info"), check=check_batch_of_matrices("linalg.cholesky", low=True), holomorphic=False,
    unsupported_dtypes=not_implemented("cholesky_cpu", "narrow", empty=False), exact_out=True, **LINALG_OPTIONS)
def linalg_cholesky_ex(xp, input, *, upper=False, check_errors=False):
    """The Cholesky factor L of input = L Lᴴ, and the order of the first leading minor that is not positive (0: none).

    Args:
        upper: whether to return Lᴴ.

    >>> import flambeau as torch
    >>> torch.linalg.cholesky_ex(torch.tensor([[4.]])).L
    tensor([[2.]])
    """
    return xp.cholesky(input, upper)


@op(name="linalg_cholesky_ex", key="_cholesky", node="CholeskyBackward0", outputs=("L", "info"), expose=(),
    check=lambda input: _check_unless_empty(input), holomorphic=False, batching_rule="trailing",
    unsupported_dtypes=not_implemented("cholesky_cpu", *NO_LAPACK, empty=False), saved="result=L upper")
def cholesky(xp, input, *, upper=False):
    """`linalg_cholesky_ex` of `torch.cholesky`: an input without elements may have any shape and dtype."""
    if 0 in input.shape:
        return xp.zeros_like(input), xp.zeros(input.shape[:-2], dtype="int32")
    return xp.cholesky(input, upper)


def _check_unless_empty(input):
    if 0 not in input.shape:
        check_matrices("cholesky", input, square=True)


def _cholesky_vjp(xp, g, factor, upper):
    low, g = (conj_transpose(xp, factor), conj_transpose(xp, g)) if upper else (factor, g)
    inner = xp.tril(xp.matmul(conj_transpose(xp, low), g), 0)
    inner = (inner + conj_transpose(xp, xp.tril(inner, -1))) * 0.5
    low_h = conj_transpose(xp, low)
    left = xp.linalg_solve_triangular(low_h, inner, upper=True)
    return xp.linalg_solve_triangular(low, left, upper=False, left=False)


def _cholesky_jvp(xp, t_input, L, upper):
    low = conj_transpose(xp, L) if upper else L
    inner = xp.linalg_solve_triangular(low, t_input, upper=False)
    inner = xp.linalg_solve_triangular(conj_transpose(xp, low), inner, upper=True, left=False)
    inner = (xp.tril(inner, -1) + xp.tril(inner, 0)) * 0.5
    tangent = xp.matmul(low, inner)
    return (conj_transpose(xp, tangent) if upper else tangent), None


for _op in (linalg_cholesky_ex, cholesky):
    _op.vjp(input=lambda xp, g0, L, upper: _cholesky_vjp(xp, g0, L, upper))
    _op.jvp(_cholesky_jvp)


# ----- QR and eigenvalue decompositions ---------------------------------------------------------------


@op(outputs=("Q", "R"), check=check_batch_of_matrices("linalg.qr", square=False, low=True),
    unsupported_dtypes=not_implemented("geqrf_cpu", "narrow"), holomorphic=False, exact_out=True, **LINALG_OPTIONS)
def linalg_qr(xp, A, *, mode="reduced"):
    """The QR decomposition A = Q R, Q with orthonormal columns, R upper triangular.

    Args:
        mode: "reduced", "complete" (Q square), or "r" (no Q).

    >>> import flambeau as torch
    >>> torch.linalg.qr(torch.tensor([[3.], [4.]])).R.abs()
    tensor([[5.]])
    """
    return xp.qr(A, mode)


def _first_columns(xp, x, count):
    return xp._basic_index(x, key=(Ellipsis, slice(0, count)))


def _qr_vjp(xp, g_q, g_r, q, r, mode):
    m, n = q.shape[-2], r.shape[-1]
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                           "linalg.qr(A, mode='reduced') if you are going to require gradients.")
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if m >= n:
        return _tall_qr_vjp(xp, g_q, g_r, q, r)
    # A = [A₁ | A₂] with A₁ = Q R₁ square and R₂ = Qᴴ A₂
    g_r2, r2 = xp._basic_index(g_r, key=(Ellipsis, slice(m, n))), xp._basic_index(r, key=(Ellipsis, slice(m, n)))
    g_q = g_q + xp.matmul(q, xp.matmul(r2, conj_transpose(xp, g_r2)))
    first = _tall_qr_vjp(xp, g_q, _first_columns(xp, g_r, m), q, _first_columns(xp, r, m))
    second = xp.matmul(q, g_r2)
    shape = (*first.shape[:-1], n)
    return (xp._embed(first, size=shape, key=(Ellipsis, slice(0, m)))
            + xp._embed(second, size=shape, key=(Ellipsis, slice(m, n))))


def _tall_qr_vjp(xp, g_q, g_r, q, r):
    m = xp.triu(xp.matmul(g_r, conj_transpose(xp, r)) - xp.matmul(conj_transpose(xp, q), g_q), 0)
    # the diagonal counts once, and its imaginary part not
    symmetric = (m + conj_transpose(xp, m)) - xp._diagonal_part(m)
    return xp.linalg_solve_triangular(conj_transpose(xp, r), g_q + xp.matmul(q, symmetric), upper=False, left=False)


@composite(expose=())
def _diagonal_part(xp, input):
    """The diagonal matrix of the real part of the diagonal."""
    diagonal = xp.real(xp.diagonal(input, 0, -2, -1))
    n = len(input.shape)
    return xp._embed_diagonal(diagonal, size=input.shape, offset=0, dim1=n - 2, dim2=n - 1)


def _qr_vmap(xp, batch, A, mode):
    q, r = xp.linalg_qr(A, mode=mode)
    return (batch.expand_levels(q) if mode == "r" else q), r


linalg_qr.vmap(lambda xp, batch, A, *, mode="reduced": _qr_vmap(xp, batch, A, mode))
linalg_qr.vjp(A=lambda xp, g0, g1, Q, R, mode: _qr_vjp(xp, g0, g1, Q, R, mode))


@op(outputs=("eigenvalues", "eigenvectors"), check=lambda A: check_matrices("linalg.eigh", A, square=True),
    unsupported_dtypes=not_implemented("linalg_eigh_cpu", *NO_LAPACK), holomorphic=False, exact_out=True,
    **LINALG_OPTIONS)
def linalg_eigh(xp, A, *, UPLO="L"):
    """The eigenvalues in ascending order and the eigenvectors of a Hermitian matrix.

    Args:
        UPLO: the triangle of A that is read, "L" or "U".

    >>> import flambeau as torch
    >>> torch.linalg.eigh(torch.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    return xp.eigh(A, UPLO)


def _eigenvalue_differences(xp, values):
    """Return values[j] - values[i], and 1 where that is 0."""
    gap = xp.unsqueeze(values, -2) - xp.unsqueeze(values, -1)
    return xp.where(gap == 0, xp.ones_like(gap), gap)


def _off_diagonal(xp, x):
    return xp.triu(x, 1) + xp.tril(x, -1)


def _as_diagonal(xp, values):
    n = values.shape[-1]
    rank = len(values.shape)
    return xp._embed_diagonal(values, size=(*values.shape, n), offset=0, dim1=rank - 1, dim2=rank)


def _eigh_vjp(xp, g_values, g_vectors, values, vectors):
    vectors_h = conj_transpose(xp, vectors)
    rotation = xp.matmul(vectors_h, g_vectors)
    rotation = (rotation - conj_transpose(xp, rotation)) * 0.5  # the tangent space of unitary matrices
    inner = _off_diagonal(xp, rotation) / _eigenvalue_differences(xp, values) + _as_diagonal(xp, g_values)
    return xp.matmul(vectors, xp.matmul(inner, vectors_h))


def _eigh_jvp(xp, t_A, eigenvalues, eigenvectors):
    inner = xp.matmul(conj_transpose(xp, eigenvectors), xp.matmul(t_A, eigenvectors))
    rotation = _off_diagonal(xp, inner) / _eigenvalue_differences(xp, eigenvalues)
    return xp.real(xp.diagonal(inner, 0, -2, -1)), xp.matmul(eigenvectors, rotation)


linalg_eigh.jvp(_eigh_jvp)
linalg_eigh.vjp(A=lambda xp, g0, g1, eigenvalues, eigenvectors: _eigh_vjp(xp, g0, g1, eigenvalues, eigenvectors))


def _check_eig(A):
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(f"Unknown Complex ScalarType for {A.dtype.scalar_name}")
    check_matrices("linalg.eig", A, square=True)


@op(outputs=("eigenvalues", "eigenvectors"), check=_check_eig,
    unsupported_dtypes=not_implemented("linalg_eig_out_cpu", "narrow"),
    holomorphic=False, castable_out=("torch.linalg.eig", "eigenvalues", "eigenvectors"), **LINALG_OPTIONS)
def linalg_eig(xp, A):
    """The complex eigenvalues and eigenvectors of a square matrix.

    >>> import flambeau as torch
    >>> torch.linalg.eig(torch.tensor([[2.]])).eigenvalues
    tensor([2.+0.j])
    """
    return xp.eig(A)


def _eig_vjp(xp, g_values, g_vectors, values, vectors):
    vectors_h = conj_transpose(xp, vectors)
    projected = xp.matmul(vectors_h, g_vectors)
    # the vectors are normalized: changes of their length have no effect
    projected = projected - xp.matmul(vectors_h, vectors) * xp.unsqueeze(xp.real(xp.diagonal(projected, 0, -2, -1)), -2)
    inner = _off_diagonal(xp, projected) / xp.conj(_eigenvalue_differences(xp, values)) + _as_diagonal(xp, g_values)
    return xp.linalg_solve_ex(vectors_h, xp.matmul(inner, vectors_h))[0]


linalg_eig.vjp(A=lambda xp, g0, g1, eigenvalues, eigenvectors: _eig_vjp(xp, g0, g1, eigenvalues, eigenvectors))


@op(outputs=("U", "S", "Vh"), check=check_batch_of_matrices("linalg.svd", square=False, low=True),
    unsupported_dtypes=not_implemented("linalg_svd_cpu", "narrow", empty=False), holomorphic=False, exact_out=True,
    saved="S S_sym_argsize_minus_1 U Vh full_matrices", **LINALG_OPTIONS)
def linalg_svd(xp, A, *, full_matrices=True):
    """The singular value decomposition A = U diag(S) Vh.

    Args:
        full_matrices: whether U and Vh are square.

    >>> import flambeau as torch
    >>> torch.linalg.svd(torch.tensor([[3.], [4.]])).S
    tensor([5.])
    """
    return xp.svd(A, full_matrices)


def _svd_vjp(xp, g_u, g_s, g_vh, u, s, vh):
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    u, g_u = _first_columns(xp, u, k), _first_columns(xp, g_u, k)
    rows = (Ellipsis, slice(0, k), slice(None))
    vh, g_vh = xp._basic_index(vh, key=rows), xp._basic_index(g_vh, key=rows)
    uh, v = conj_transpose(xp, u), conj_transpose(xp, vh)
    by_u, by_v = xp.matmul(uh, g_u), xp.matmul(vh, conj_transpose(xp, g_vh))
    squares = _eigenvalue_differences(xp, s * s)
    row, column = xp.unsqueeze(s, -2), xp.unsqueeze(s, -1)
    core = (by_u - conj_transpose(xp, by_u)) / squares * row + column * ((by_v - conj_transpose(xp, by_v)) / squares)
    core = _off_diagonal(xp, core) + _as_diagonal(xp, g_s)
    if xp.is_complex(u):
        phase = xp.imag(xp.diagonal(by_u, 0, -2, -1))
        phase = xp.where(phase == 0, 0, phase / s)  # 0 / 0 counts as 0
        core = core + _as_diagonal(xp, phase * 1j)
    total = xp.matmul(u, xp.matmul(core, vh))
    if m > k:
        rest = g_u - xp.matmul(u, by_u)
        total = total + xp.matmul(rest / row, vh)
    if n > k:
        rest = g_vh - xp.matmul(xp.matmul(g_vh, v), vh)
        total = total + xp.matmul(u, rest / column)
    return total


def _svd_jvp(xp, t_A, U, S, Vh):
    # t_U = U R for the change of basis R, skew up to phases; the vectors' free phases are those of U alone
    m, n, k = U.shape[-2], Vh.shape[-1], S.shape[-1]
    u, vh = _first_columns(xp, U, k), xp._basic_index(Vh, key=(Ellipsis, slice(0, k), slice(None)))
    uh, v = conj_transpose(xp, u), conj_transpose(xp, vh)
    inner = xp.matmul(uh, xp.matmul(t_A, v))
    inner_h = conj_transpose(xp, inner)
    squares = _eigenvalue_differences(xp, S * S)
    row, column = xp.unsqueeze(S, -2), xp.unsqueeze(S, -1)
    of_u = _off_diagonal(xp, inner * row + column * inner_h) / squares
    of_v = _off_diagonal(xp, column * inner + inner_h * row) / squares
    diagonal = xp.diagonal(inner, 0, -2, -1)
    if xp.is_complex(u):
        phase = xp.imag(diagonal)
        of_u = of_u + _as_diagonal(xp, xp.where(phase == 0, 0, phase / S) * 1j)
    t_u, t_vh = xp.matmul(u, of_u), -xp.matmul(of_v, vh)
    if m > k:
        image = xp.matmul(t_A, v)
        t_u = t_u + (image - xp.matmul(u, xp.matmul(uh, image))) / row
    if n > k:
        image = xp.matmul(uh, t_A)
        t_vh = t_vh + (image - xp.matmul(xp.matmul(image, v), vh)) / column
    if U.shape[-1] > k:
        t_u = xp._embed(t_u, size=U.shape, key=(Ellipsis, slice(0, k)))
    if Vh.shape[-2] > k:
        t_vh = xp._embed(t_vh, size=Vh.shape, key=(Ellipsis, slice(0, k), slice(None)))
    return t_u, xp.real(diagonal), t_vh


linalg_svd.jvp(_svd_jvp)
linalg_svd.vjp(A=lambda xp, g0, g1, g2, U, S, Vh: _svd_vjp(xp, g0, g1, g2, U, S, Vh))


# ----- the exponential ------------------------------------------------------------------


@op(key="linalg_matrix_exp", name="linalg_matrix_exp", node="LinalgMatrixExpBackward0",
    check=check_batch_of_matrices("linalg.matrix_exp", low=True), saved="self=A", **LINALG_OPTIONS)
def linalg_matrix_exp(xp, A):
    """The exponential of a square matrix, Σ Aᵏ / k!.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return xp.matrix_exp(A)


def _matrix_exp_vjp(xp, g, A):
    # the upper right block of exp [[Aᵀ, g], [0, Aᵀ]] is the derivative along g
    n = A.shape[-1]
    size = (*A.shape[:-2], 2 * n, 2 * n)
    transposed = transpose_last(xp, A)
    low, high = slice(0, n), slice(n, 2 * n)
    block = (xp._embed(transposed, size=size, key=(Ellipsis, low, low))
             + xp._embed(transposed, size=size, key=(Ellipsis, high, high))
             + xp._embed(g, size=size, key=(Ellipsis, low, high)))
    return xp._basic_index(xp.linalg_matrix_exp(block), key=(Ellipsis, low, high))


linalg_matrix_exp.vjp(A=lambda xp, g, A: _matrix_exp_vjp(xp, g, A))
