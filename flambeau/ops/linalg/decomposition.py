"""Decompositions, inverses, determinants and linear systems of dense matrices, (..., n, n) or (..., m, n).

Rules of functions that conjugate something are stated in full (`holomorphic=False`); H is the conjugate
transpose.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...shapes import are_vectors
from ..declare import composite, not_implemented, op

_LINALG: dict[str, Any] = {"expose": ("linalg",), "batching_rule": "trailing"}


def _transpose_last(xp, x):
    return xp.transpose(x, -2, -1)


def _h(xp, x):
    return xp.conj(xp.transpose(x, -2, -1))


# ----- what the inputs must be ----------------------------------------------------------


def check_matrices(name: str, x: Any, letter: str = "A", square: bool = False) -> None:
    """Refuse what is no batch of (square) matrices, in PyTorch's words."""
    if len(x.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {letter} must have at least 2 dimensions.")
    if square and x.shape[-1] != x.shape[-2]:
        raise RuntimeError(f"{name}: {letter} must be batches of square matrices, but they are {x.shape[-2]} by "
                           f"{x.shape[-1]} matrices")


def check_floating(name: str, x: Any, low: bool = False) -> None:
    """Refuse numbers that are no floating point ones, and unless `low` those of half precision, in PyTorch's words."""
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}")
    if not low and x.dtype.itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {x.dtype.scalar_name}")


def _check_batch_of_matrices(name: str, square: bool = True, low: bool = False) -> Any:
    """A check of the first input by both of them."""
    def check(x: Any, *_: Any) -> None:
        check_matrices(name, x, square=square)
        check_floating(name, x, low)

    return check


#: what LAPACK has no functions for
_NO_LAPACK = ("bool", "integer", "narrow")


# ----- inverses and systems -------------------------------------------------------------


@op(outputs=("inverse", "info"), check=_check_batch_of_matrices("linalg.inv"), **_LINALG)
def linalg_inv_ex(xp, A, *, check_errors=False):
    """The inverse, and which diagonal element was 0 where there is none (0: none was).

    >>> import flambeau as torch
    >>> torch.linalg.inv_ex(torch.tensor([[2.]])).inverse
    tensor([[0.5000]])
    """
    return xp.invert(A)


def _inverse_vjp(xp, g, inverse):
    turned = _transpose_last(xp, inverse)
    return -xp.matmul(xp.matmul(turned, g), turned)


linalg_inv_ex.vjp(A=lambda xp, g0, inverse: _inverse_vjp(xp, g0, inverse))
linalg_inv_ex.jvp(lambda xp, t_A, inverse: (-xp.matmul(xp.matmul(inverse, t_A), inverse), None))


def _check_solve(A: Any, B: Any) -> None:
    check_matrices("linalg.solve", A, square=True)
    check_floating("linalg.solve", A, low=True)
    if A.dtype is not B.dtype:
        raise RuntimeError("linalg.solve: Expected A and B to have the same dtype, but found A of type "
                           f"{A.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead")


@op(outputs=("result", "info"), check=_check_solve, unsupported_dtypes=not_implemented("lu_cpu", "narrow", empty=False),
    **_LINALG)
def linalg_solve_ex(xp, A, B, *, left=True, check_errors=False):
    """X with A X = B (X A = B if not `left`), and which diagonal element was 0 (0: none was).

    >>> import flambeau as torch
    >>> torch.linalg.solve_ex(torch.tensor([[2.]]), torch.tensor([3.])).result
    tensor([1.5000])
    """
    return xp.solve(A, B, left)


def _solve_vjp(xp, g, A, A_shape, B_shape, result, left):
    by_b = xp.linalg_solve_ex(_transpose_last(xp, A), g, left=left)[0]
    if are_vectors(A_shape, B_shape):
        by_a = -(xp.unsqueeze(by_b, -1) * xp.unsqueeze(result, -2))
    elif left:
        by_a = -xp.matmul(by_b, _transpose_last(xp, result))
    else:
        by_a = -xp.matmul(_transpose_last(xp, result), by_b)
    return xp.sum_to_size(by_a, A_shape), xp.sum_to_size(by_b, B_shape)


def _solve_batched_systems(xp, batch, solve, A, a, B, b, left):
    """Solve systems some of which have hidden dimensions; one matrix takes all right-hand sides together.

    Args:
        solve: a function of A and B.
        a, b: the numbers of the inputs A and B.
    """
    k = batch.k
    if batch.on[a] or len(A.shape) > 2:
        ndim = max(len(x.shape) - k * batch.on[i] for x, i in ((A, a), (B, b)))
        return solve(batch.padded(a, A, ndim), batch.padded(b, B, ndim))
    if left:
        sides = xp.movedim(B, -2, 0)
        shape = sides.shape
        found = solve(A, xp.reshape(sides, (shape[0], prod(shape[1:]))))
        return xp.movedim(xp.reshape(found, shape), 0, -2)
    return xp.reshape(solve(A, xp.reshape(B, (prod(B.shape[:-1]), B.shape[-1]))), B.shape)


def _solve_vmap(xp, batch, A, B, left, check_errors):
    k = batch.k
    a, b = (x.shape[k:] if on else x.shape for x, on in zip((A, B), batch.on, strict=True))
    vector = left and are_vectors(a, b)
    infos = []

    def solve(A, B):
        result, info = xp.linalg_solve_ex(A, B, left=left, check_errors=check_errors)
        infos.append(info)
        return result

    result = _solve_batched_systems(xp, batch, solve, A, 0, xp.unsqueeze(B, -1) if vector else B, 1, left)
    info = xp.reshape(infos[0], (*batch.sizes, *a[:-2])) if batch.on[0] else batch.full(infos[0])
    return xp.squeeze(result, -1) if vector else result, info


linalg_solve_ex.vmap(lambda xp, batch, A, B, *, left=True, check_errors=False: _solve_vmap(
    xp, batch, A, B, left, check_errors))
linalg_solve_ex.joint_vjp(lambda xp, g0, A, A_shape, B_shape, result, left: _solve_vjp(
    xp, g0, A, A_shape, B_shape, result, left))


def _check_triangular(A: Any, B: Any) -> None:
    check_matrices("linalg.solve_triangular", A, square=True)
    check_matrices("linalg.solve_triangular", B, "B")
    if A.dtype is not B.dtype:
        raise RuntimeError("linalg.solve_triangular: Expected A and B to have the same dtype, but found A of type "
                           f"{A.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead")


@op(check=_check_triangular, unsupported_dtypes=not_implemented("triangular_solve_cpu", *_NO_LAPACK), **_LINALG)
def linalg_solve_triangular(xp, A, B, *, upper, left=True, unitriangular=False):
    """X with A X = B (X A = B if not `left`), where only one triangle of A counts.

    >>> import flambeau as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2.]]), torch.tensor([[3.]]), upper=True)
    tensor([[1.5000]])
    """
    return xp.solve_triangle(A, B, upper, left, unitriangular)


def _triangular_vjp(xp, g, A, A_shape, B_shape, out, upper, left, unitriangular):
    by_b = xp.linalg_solve_triangular(_transpose_last(xp, A), g, upper=not upper, left=left,
                                      unitriangular=unitriangular)
    x = _transpose_last(xp, out)
    by_a = -(xp.matmul(by_b, x) if left else xp.matmul(x, by_b))
    off = 1 if unitriangular else 0
    by_a = xp.triu(by_a, off) if upper else xp.tril(by_a, -off)
    return xp.sum_to_size(by_a, A_shape), xp.sum_to_size(by_b, B_shape)


linalg_solve_triangular.joint_vjp(
    lambda xp, g, A, A_shape, B_shape, out, upper, left, unitriangular: _triangular_vjp(
        xp, g, A, A_shape, B_shape, out, upper, left, unitriangular))
linalg_solve_triangular.vmap(lambda xp, batch, A, B, *, upper, left=True, unitriangular=False: _solve_batched_systems(
    xp, batch, lambda A, B: xp.linalg_solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular),
    A, 0, B, 1, left))


@op(batching_rule="trailing", key="linalg_pinv", name="linalg_pinv", node="LinalgPinvBackward0", expose=(),
    holomorphic=False)
def linalg_pinv(xp, input, *, atol, rtol, hermitian):
    """The Moore-Penrose inverse; singular values up to max(atol, rtol · σ₁) count as 0."""
    return xp.pseudoinvert(input, atol, rtol, hermitian)


def _pinv_vjp(xp, g, input, out):
    p, turned = _h(xp, out), _h(xp, g)
    inner = turned - xp.matmul(xp.matmul(input, out), turned)  # (I - A P) gᴴ
    outer = turned - xp.matmul(xp.matmul(turned, out), input)  # gᴴ (I - P A)
    return (xp.matmul(xp.matmul(inner, out), p) + xp.matmul(p, xp.matmul(out, outer))
            - xp.matmul(xp.matmul(p, g), p))


linalg_pinv.vjp(input=lambda xp, g, input, out: _pinv_vjp(xp, g, input, out))


def _check_lstsq(A: Any, B: Any) -> None:
    check_matrices("torch.linalg.lstsq", A, "input")
    if A.dtype is not B.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{A.dtype.scalar_name} and other's dtype {B.dtype.scalar_name}")


@op(key="_linalg_lstsq", name="linalg_lstsq", outputs=("solution", "residuals", "rank", "singular_values"),
    check=_check_lstsq, unsupported_dtypes=not_implemented("linalg_lstsq_cpu", *_NO_LAPACK), holomorphic=False,
    expose=())
def _linalg_lstsq(xp, A, B, *, rcond, driver):
    """The X of least norm that brings A X nearest to B; what else LAPACK's driver tells."""
    return xp.least_squares(A, B, rcond, driver)


def _lstsq_vjp(xp, g0, g1, A, B, solution, rcond):
    vector = are_vectors(A.shape, B.shape)
    b, x, g = (xp.unsqueeze(v, -1) for v in (B, solution, g0)) if vector else (B, solution, g0)
    inverse = xp.linalg_pinv(A, atol=0.0, rtol=rcond, hermitian=False)
    by_b = xp.matmul(_h(xp, inverse), g)
    by_a = _pinv_vjp(xp, xp.matmul(g, _h(xp, b)), A, inverse)
    if 0 not in g1.shape:
        # the solution is where the residuals are least: they change with A and B alone
        left = (xp.matmul(A, x) - b) * xp.unsqueeze(g1 * 2, -2)
        by_a = by_a + xp.matmul(left, _h(xp, x))
        by_b = by_b - left
    return by_a, xp.reshape(by_b, B.shape)


def _lstsq_vmap(xp, batch, A, B, rcond, driver):
    k = batch.k
    a, b = (x.shape[k:] if on else x.shape for x, on in zip((A, B), batch.on, strict=True))
    A, B = (x if on else batch.full(x) for x, on in zip((A, B), batch.on, strict=True))
    vector = are_vectors(a, b)
    solution, *told = xp._linalg_lstsq(A, xp.unsqueeze(B, -1) if vector else B, rcond=rcond, driver=driver)
    told = [x if x.shape[:k] == batch.sizes else batch.full(x) for x in told]  # nothing is told of all alike
    return xp.squeeze(solution, -1) if vector else solution, *told


_linalg_lstsq.vmap(lambda xp, batch, A, B, *, rcond, driver: _lstsq_vmap(xp, batch, A, B, rcond, driver))
_linalg_lstsq.joint_vjp(lambda xp, g0, g1, A, B, solution, rcond: _lstsq_vjp(xp, g0, g1, A, B, solution, rcond))


# ----- determinants ---------------------------------------------------------------------


@op(node="LinalgDetBackward0", check=_check_batch_of_matrices("linalg.det", low=True),
    unsupported_dtypes=not_implemented("lu_cpu", "narrow", empty=False), key="linalg_det", name="linalg_det", **_LINALG)
def linalg_det(xp, A):
    """The determinant.

    >>> import flambeau as torch
    >>> torch.linalg.det(torch.tensor([[2., 1.], [1., 2.]]))
    tensor(3.)
    """
    return xp.determinant(A)


@composite(expose=())
def _cofactors(xp, input, determinant):
    """det(A) A⁻ᵀ, the gradient of the determinant; also of singular matrices on arrays."""
    return xp.unsqueeze(xp.unsqueeze(determinant, -1), -1) * _transpose_last(xp, xp.linalg_inv_ex(input)[0])


linalg_det.vjp(A=lambda xp, g, A, out: xp.unsqueeze(xp.unsqueeze(g, -1), -1) * xp._cofactors(A, out))


@op(outputs=("sign", "logabsdet"), check=_check_batch_of_matrices("linalg.slogdet"), holomorphic=False, **_LINALG)
def linalg_slogdet(xp, A):
    """The sign of the determinant, and the logarithm of its absolute value.

    >>> import flambeau as torch
    >>> torch.linalg.slogdet(torch.tensor([[-1.]])).sign
    tensor(-1.)
    """
    return xp.sign_and_log_determinant(A)


def _slogdet_vjp(xp, g0, g1, A, sign):
    slope = xp.conj(_transpose_last(xp, xp.linalg_inv_ex(A)[0]))
    if xp.is_complex(A):
        # log det = logabsdet + i · angle, and sign = exp(i · angle)
        angle = xp.imag(xp.conj(g0) * sign)
        weight = g1 - 1j * angle
    else:
        weight = g1
    return xp.unsqueeze(xp.unsqueeze(weight, -1), -1) * slope


linalg_slogdet.vjp(A=lambda xp, g0, g1, A, sign: _slogdet_vjp(xp, g0, g1, A, sign))


# ----- of positive definite matrices ----------------------------------------------------


@op(outputs=("L", "info"), check=_check_batch_of_matrices("linalg.cholesky", low=True), holomorphic=False,
    unsupported_dtypes=not_implemented("cholesky_cpu", "narrow", empty=False), **_LINALG)
def linalg_cholesky_ex(xp, input, *, upper=False, check_errors=False):
    """L, lower triangular, with L Lᴴ = input (or Lᴴ), and the order of the first minor that is not positive.

    >>> import flambeau as torch
    >>> torch.linalg.cholesky_ex(torch.tensor([[4.]])).L
    tensor([[2.]])
    """
    return xp.cholesky_factor(input, upper)


def _cholesky_vjp(xp, g, factor, upper):
    low, g = (_h(xp, factor), _h(xp, g)) if upper else (factor, g)
    inner = xp.tril(xp.matmul(_h(xp, low), g), 0)
    inner = (inner + _h(xp, xp.tril(inner, -1))) * 0.5
    across = _h(xp, low)
    left = xp.linalg_solve_triangular(across, inner, upper=True)
    return xp.linalg_solve_triangular(low, left, upper=False, left=False)


def _cholesky_jvp(xp, t_input, L, upper):
    low = _h(xp, L) if upper else L
    inner = xp.linalg_solve_triangular(low, t_input, upper=False)
    inner = xp.linalg_solve_triangular(_h(xp, low), inner, upper=True, left=False)
    inner = (xp.tril(inner, -1) + xp.tril(inner, 0)) * 0.5
    tangent = xp.matmul(low, inner)
    return (_h(xp, tangent) if upper else tangent), None


linalg_cholesky_ex.vjp(input=lambda xp, g0, L, upper: _cholesky_vjp(xp, g0, L, upper))
linalg_cholesky_ex.jvp(_cholesky_jvp)


@op(node="CholeskySolveBackward0", holomorphic=False,
    unsupported_dtypes=not_implemented("cholesky_solve_cpu", *_NO_LAPACK))
def cholesky_solve(xp, B, L, *, upper=False):
    """X with A X = B, A given by its Cholesky factor.

    >>> import flambeau as torch
    >>> torch.cholesky_solve(torch.tensor([[8.]]), torch.tensor([[2.]]))
    tensor([[2.]])
    """
    return xp.solve_by_factor(B, L, upper)


def _cholesky_solve_vjp(xp, g, B_shape, L, L_shape, out, upper):
    by_b = xp.cholesky_solve(g, L, upper=upper)
    pair = xp.matmul(by_b, _h(xp, out))
    pair = -(pair + _h(xp, pair))
    by_l = xp.matmul(L, pair) if upper else xp.matmul(pair, L)
    return xp.sum_to_size(by_b, B_shape), xp.sum_to_size(by_l, L_shape)


cholesky_solve.joint_vjp(lambda xp, g, B_shape, L, L_shape, out, upper: _cholesky_solve_vjp(
    xp, g, B_shape, L, L_shape, out, upper))
cholesky_solve.vmap(lambda xp, batch, B, L, *, upper=False: _solve_batched_systems(
    xp, batch, lambda L, B: xp.cholesky_solve(B, L, upper=upper), L, 1, B, 0, True))


@op(batching_rule="trailing", node="CholeskyInverseBackward0", holomorphic=False,
    check=lambda L: check_matrices("cholesky_inverse", L, square=True),
    unsupported_dtypes=not_implemented("cholesky_inverse_out_cpu", *_NO_LAPACK))
def cholesky_inverse(xp, L, *, upper=False):
    """The inverse of a matrix given by its Cholesky factor.

    >>> import flambeau as torch
    >>> torch.cholesky_inverse(torch.tensor([[2.]]))
    tensor([[0.2500]])
    """
    return xp.invert_by_factor(L, upper)


def _cholesky_inverse_vjp(xp, g, L, out, upper):
    middle = -xp.matmul(xp.matmul(out, g + _h(xp, g)), out)
    return xp.matmul(L, middle) if upper else xp.matmul(middle, L)


cholesky_inverse.vjp(L=lambda xp, g, L, out, upper: _cholesky_inverse_vjp(xp, g, L, out, upper))


# ----- orthogonal factors ---------------------------------------------------------------


@op(outputs=("Q", "R"), check=_check_batch_of_matrices("linalg.qr", square=False, low=True),
    unsupported_dtypes=not_implemented("geqrf_cpu", "narrow"), holomorphic=False, **_LINALG)
def linalg_qr(xp, A, *, mode="reduced"):
    """Q with orthonormal columns and R upper triangular, A = Q R.

    Args:
        mode: "reduced", "complete" (Q square), or "r" (no Q).

    >>> import flambeau as torch
    >>> torch.linalg.qr(torch.tensor([[3.], [4.]])).R.abs()
    tensor([[5.]])
    """
    return xp.orthogonal_factors(A, mode)


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
    # A = [A₁ | A₂]: A₁ = Q R₁ as a tall matrix's, R₂ = Qᴴ A₂
    g_r2, r2 = xp._basic_index(g_r, key=(Ellipsis, slice(m, n))), xp._basic_index(r, key=(Ellipsis, slice(m, n)))
    g_q = g_q + xp.matmul(q, xp.matmul(r2, _h(xp, g_r2)))
    first = _tall_qr_vjp(xp, g_q, _first_columns(xp, g_r, m), q, _first_columns(xp, r, m))
    second = xp.matmul(q, g_r2)
    shape = (*first.shape[:-1], n)
    return (xp._embed(first, size=shape, key=(Ellipsis, slice(0, m)))
            + xp._embed(second, size=shape, key=(Ellipsis, slice(m, n))))


def _tall_qr_vjp(xp, g_q, g_r, q, r):
    m = xp.triu(xp.matmul(g_r, _h(xp, r)) - xp.matmul(_h(xp, q), g_q), 0)
    # the diagonal counts once, its imaginary part not at all
    symmetric = (m + _h(xp, m)) - xp._diagonal_part(m)
    return xp.linalg_solve_triangular(_h(xp, r), g_q + xp.matmul(q, symmetric), upper=False, left=False)


@composite(expose=())
def _diagonal_part(xp, input):
    """The real part of the diagonal, as a matrix."""
    diagonal = xp.real(xp.diagonal(input, 0, -2, -1))
    n = len(input.shape)
    return xp._embed_diagonal(diagonal, size=input.shape, offset=0, dim1=n - 2, dim2=n - 1)


def _qr_vmap(xp, batch, A, mode):
    q, r = xp.linalg_qr(A, mode=mode)
    return (batch.full(q) if mode == "r" else q), r


linalg_qr.vmap(lambda xp, batch, A, *, mode="reduced": _qr_vmap(xp, batch, A, mode))
linalg_qr.vjp(A=lambda xp, g0, g1, Q, R, mode: _qr_vjp(xp, g0, g1, Q, R, mode))


@op(outputs=("eigenvalues", "eigenvectors"), check=lambda A: check_matrices("linalg.eigh", A, square=True),
    unsupported_dtypes=not_implemented("linalg_eigh_cpu", *_NO_LAPACK), holomorphic=False, **_LINALG)
def linalg_eigh(xp, A, *, UPLO="L"):
    """The eigenvalues, ascending, and eigenvectors of a Hermitian matrix, of which one triangle is read.

    >>> import flambeau as torch
    >>> torch.linalg.eigh(torch.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    return xp.hermitian_eigen(A, UPLO)


def _eigenvalue_differences(xp, values):
    """values[j] - values[i], and 1 where that is 0."""
    gap = xp.unsqueeze(values, -2) - xp.unsqueeze(values, -1)
    return xp.where(gap == 0, xp.ones_like(gap), gap)


def _off_diagonal(xp, x):
    return xp.triu(x, 1) + xp.tril(x, -1)


def _as_diagonal(xp, values):
    n = values.shape[-1]
    rank = len(values.shape)
    return xp._embed_diagonal(values, size=(*values.shape, n), offset=0, dim1=rank - 1, dim2=rank)


def _eigh_vjp(xp, g_values, g_vectors, values, vectors):
    back = _h(xp, vectors)
    turn = xp.matmul(back, g_vectors)
    turn = (turn - _h(xp, turn)) * 0.5  # orthonormal vectors can only turn
    inner = _off_diagonal(xp, turn) / _eigenvalue_differences(xp, values) + _as_diagonal(xp, g_values)
    return xp.matmul(vectors, xp.matmul(inner, back))


def _eigh_jvp(xp, t_A, eigenvalues, eigenvectors):
    inner = xp.matmul(_h(xp, eigenvectors), xp.matmul(t_A, eigenvectors))
    turn = _off_diagonal(xp, inner) / _eigenvalue_differences(xp, eigenvalues)
    return xp.real(xp.diagonal(inner, 0, -2, -1)), xp.matmul(eigenvectors, turn)


linalg_eigh.jvp(_eigh_jvp)
linalg_eigh.vjp(A=lambda xp, g0, g1, eigenvalues, eigenvectors: _eigh_vjp(xp, g0, g1, eigenvalues, eigenvectors))


_NO_COMPLEX = RuntimeError("Unknown Complex ScalarType for {}")


@op(outputs=("eigenvalues", "eigenvectors"), check=lambda A: check_matrices("linalg.eig", A, square=True),
    unsupported_dtypes={"bool": _NO_COMPLEX, "integer": _NO_COMPLEX, **not_implemented("linalg_eig_out_cpu", "narrow")},
    holomorphic=False, **_LINALG)
def linalg_eig(xp, A):
    """The eigenvalues and eigenvectors of a square matrix: complex.

    >>> import flambeau as torch
    >>> torch.linalg.eig(torch.tensor([[2.]])).eigenvalues
    tensor([2.+0.j])
    """
    return xp.eigen(A)


def _eig_vjp(xp, g_values, g_vectors, values, vectors):
    back = _h(xp, vectors)
    turned = xp.matmul(back, g_vectors)
    # vectors have length 1: what would change it has no effect
    turned = turned - xp.matmul(back, vectors) * xp.unsqueeze(xp.real(xp.diagonal(turned, 0, -2, -1)), -2)
    inner = _off_diagonal(xp, turned) / xp.conj(_eigenvalue_differences(xp, values)) + _as_diagonal(xp, g_values)
    return xp.linalg_solve_ex(back, xp.matmul(inner, back))[0]


linalg_eig.vjp(A=lambda xp, g0, g1, eigenvalues, eigenvectors: _eig_vjp(xp, g0, g1, eigenvalues, eigenvectors))


@op(outputs=("U", "S", "Vh"), check=_check_batch_of_matrices("linalg.svd", square=False, low=True),
    unsupported_dtypes=not_implemented("linalg_svd_cpu", "narrow", empty=False), holomorphic=False, **_LINALG)
def linalg_svd(xp, A, *, full_matrices=True):
    """Singular values and vectors: A = U diag(S) Vh.

    Args:
        full_matrices: make U and Vh square.

    >>> import flambeau as torch
    >>> torch.linalg.svd(torch.tensor([[3.], [4.]])).S
    tensor([5.])
    """
    return xp.singular_factors(A, full_matrices)


def _svd_vjp(xp, g_u, g_s, g_vh, u, s, vh):
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    u, g_u = _first_columns(xp, u, k), _first_columns(xp, g_u, k)
    rows = (Ellipsis, slice(0, k), slice(None))
    vh, g_vh = xp._basic_index(vh, key=rows), xp._basic_index(g_vh, key=rows)
    uh, v = _h(xp, u), _h(xp, vh)
    by_u, by_v = xp.matmul(uh, g_u), xp.matmul(vh, _h(xp, g_vh))
    squares = _eigenvalue_differences(xp, s * s)
    row, column = xp.unsqueeze(s, -2), xp.unsqueeze(s, -1)
    core = (by_u - _h(xp, by_u)) / squares * row + column * ((by_v - _h(xp, by_v)) / squares)
    core = _off_diagonal(xp, core) + _as_diagonal(xp, g_s)
    if xp.is_complex(u):
        phase = xp.imag(xp.diagonal(by_u, 0, -2, -1))
        phase = xp.where(phase == 0, 0, phase / s)  # no turn asked for, none made: not even where s is 0
        core = core + _as_diagonal(xp, phase * 1j)
    total = xp.matmul(u, xp.matmul(core, vh))
    if m > k:
        rest = g_u - xp.matmul(u, by_u)
        total = total + xp.matmul(rest / row, vh)
    if n > k:
        rest = g_vh - xp.matmul(xp.matmul(g_vh, v), vh)
        total = total + xp.matmul(u, rest / column)
    return total


linalg_svd.vjp(A=lambda xp, g0, g1, g2, U, S, Vh: _svd_vjp(xp, g0, g1, g2, U, S, Vh))


# ----- the exponential ------------------------------------------------------------------


@op(key="linalg_matrix_exp", name="linalg_matrix_exp", node="LinalgMatrixExpBackward0",
    check=_check_batch_of_matrices("linalg.matrix_exp", low=True), **_LINALG)
def linalg_matrix_exp(xp, A):
    """The exponential of a square matrix, Σ Aᵏ / k!.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return xp.exponentiate(A)


def _matrix_exp_vjp(xp, g, A):
    # exp [[Aᵀ, g], [0, Aᵀ]] has the derivative along g in its corner
    n = A.shape[-1]
    size = (*A.shape[:-2], 2 * n, 2 * n)
    turned = _transpose_last(xp, A)
    low, high = slice(0, n), slice(n, 2 * n)
    block = (xp._embed(turned, size=size, key=(Ellipsis, low, low))
             + xp._embed(turned, size=size, key=(Ellipsis, high, high))
             + xp._embed(g, size=size, key=(Ellipsis, low, high)))
    return xp._basic_index(xp.linalg_matrix_exp(block), key=(Ellipsis, low, high))


linalg_matrix_exp.vjp(A=lambda xp, g, A: _matrix_exp_vjp(xp, g, A))
