"""Inverses, linear systems and least squares of batches of matrices, (..., n, n) or (..., m, n).

Functions that conjugate state their derivative formulas in full (`holomorphic=False`). H is the conjugate transpose.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...shapes import are_vectors
from ..declare import not_implemented, op
from .matrix_checks import (
    LINALG_OPTIONS,
    NO_LAPACK,
    check_batch_of_matrices,
    check_floating,
    check_matrices,
    conj_transpose,
    transpose_last,
)

# ----- inverses and linear systems -------------------------------------------------------------


@op(outputs=("inverse", "info"), check=check_batch_of_matrices("linalg.inv"), exact_out=True, **LINALG_OPTIONS)
def linalg_inv_ex(xp, A, *, check_errors=False):
    """The inverse, and the 1-based index of the first zero pivot (0: none).

    Args:
        check_errors: whether to raise an error for singular matrices.

    >>> import flambeau as torch
    >>> torch.linalg.inv_ex(torch.tensor([[2.]])).inverse
    tensor([[0.5000]])
    """
    return xp.inv(A)


def _inverse_vjp(xp, g, inverse):
    inverse_t = transpose_last(xp, inverse)
    return -xp.matmul(xp.matmul(inverse_t, g), inverse_t)


linalg_inv_ex.vjp(A=lambda xp, g0, inverse: _inverse_vjp(xp, g0, inverse))
linalg_inv_ex.jvp(lambda xp, t_A, inverse: (-xp.matmul(xp.matmul(inverse, t_A), inverse), None))


def _check_solve(A: Any, B: Any) -> None:
    check_floating("linalg.solve", A, low=True)
    if A.dtype is not B.dtype:
        raise RuntimeError("linalg.solve: Expected A and B to have the same dtype, but found A of type "
                           f"{A.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead")
    check_matrices("linalg.solve", A, square=True)
    if not are_vectors(A.shape, B.shape):
        check_matrices("linalg.solve", B, "B")


@op(outputs=("result", "info"), check=_check_solve, unsupported_dtypes=not_implemented("lu_cpu", "narrow", empty=False),
    exact_out=True, saved="A left result", **LINALG_OPTIONS)
def linalg_solve_ex(xp, A, B, *, left=True, check_errors=False):
    """The solution X of A X = B (X A = B if not `left`), and the 1-based index of the first zero pivot (0: none).

    Args:
        check_errors: whether to raise an error for singular matrices.

    >>> import flambeau as torch
    >>> torch.linalg.solve_ex(torch.tensor([[2.]]), torch.tensor([3.])).result
    tensor([1.5000])
    """
    return xp.solve(A, B, left)


def _solve_vjp(xp, g, A, A_shape, B_shape, result, left):
    by_b = xp.linalg_solve_ex(transpose_last(xp, A), g, left=left)[0]
    if are_vectors(A_shape, B_shape):
        by_a = -(xp.unsqueeze(by_b, -1) * xp.unsqueeze(result, -2))
    elif left:
        by_a = -xp.matmul(by_b, transpose_last(xp, result))
    else:
        by_a = -xp.matmul(transpose_last(xp, result), by_b)
    return xp.sum_to_size(by_a, A_shape), xp.sum_to_size(by_b, B_shape)


def _solve_batched_systems(xp, batch, solve, A, a, B, b, left):
    """Solve linear systems on a batch; an unbatched matrix is solved for all right-hand sides at once.

    Args:
        solve: a function of A and B.
        a, b: the positions of A and B among the inputs.
    """
    k = batch.k
    if batch.on[a] or len(A.shape) > 2:
        ndim = max(len(x.shape) - k * batch.on[i] for x, i in ((A, a), (B, b)))
        return solve(batch.padded(a, A, ndim), batch.padded(b, B, ndim))
    if left:
        sides = xp.movedim(B, -2, 0)
        shape = sides.shape
        result = solve(A, xp.reshape(sides, (shape[0], prod(shape[1:]))))
        return xp.movedim(xp.reshape(result, shape), 0, -2)
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
    info = xp.reshape(infos[0], (*batch.sizes, *a[:-2])) if batch.on[0] else batch.expand_levels(infos[0])
    return xp.squeeze(result, -1) if vector else result, info


linalg_solve_ex.vmap(lambda xp, batch, A, B, *, left=True, check_errors=False: _solve_vmap(
    xp, batch, A, B, left, check_errors))
linalg_solve_ex.joint_vjp(lambda xp, g0, A, A_shape, B_shape, result, left: _solve_vjp(
    xp, g0, A, A_shape, B_shape, result, left))


def _check_triangular(A: Any, B: Any) -> None:
    check_matrices("linalg.solve_triangular", A, square=True)
    check_matrices("linalg.solve_triangular", B, "B")


@op(check=_check_triangular, unsupported_dtypes=not_implemented("triangular_solve_cpu", *NO_LAPACK),
    exact_out="expected scalar type {result} but found {out}",
    saved="left result self=A unitriangular upper", **LINALG_OPTIONS)
def linalg_solve_triangular(xp, A, B, *, upper, left=True, unitriangular=False):
    """The solution X of A X = B (X A = B if not `left`), with triangular A.

    Args:
        upper: the triangle of A that is read.
        unitriangular: whether the diagonal counts as ones.

    Returns:
        of the dtype of A, to which B is converted.

    >>> import flambeau as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2.]]), torch.tensor([[3.]]), upper=True)
    tensor([[1.5000]])
    """
    return xp.solve_triangular(A, B, upper, left, unitriangular)


def _triangular_vjp(xp, g, A, A_shape, B_shape, out, upper, left, unitriangular):
    by_b = xp.linalg_solve_triangular(transpose_last(xp, A), g, upper=not upper, left=left,
                                      unitriangular=unitriangular)
    x = transpose_last(xp, out)
    by_a = -(xp.matmul(by_b, x) if left else xp.matmul(x, by_b))
    diagonal = 1 if unitriangular else 0
    by_a = xp.triu(by_a, diagonal) if upper else xp.tril(by_a, -diagonal)
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
    """The Moore-Penrose pseudoinverse; singular values up to max(atol, rtol · σ₁) count as 0."""
    return xp.pinv(input, atol, rtol, hermitian)


def _pinv_vjp(xp, g, input, out):
    p, g_h = conj_transpose(xp, out), conj_transpose(xp, g)
    inner = g_h - xp.matmul(xp.matmul(input, out), g_h)  # (I - A P) gᴴ
    outer = g_h - xp.matmul(xp.matmul(g_h, out), input)  # gᴴ (I - P A)
    return (xp.matmul(xp.matmul(inner, out), p) + xp.matmul(p, xp.matmul(out, outer))
            - xp.matmul(xp.matmul(p, g), p))


linalg_pinv.vjp(input=lambda xp, g, input, out: xp.sum_to_size(  # bounds broadcast
    _pinv_vjp(xp, g, input, out), tuple(input.shape)))


def _check_lstsq(A: Any, B: Any) -> None:
    check_matrices("torch.linalg.lstsq", A, "input")
    if A.dtype is not B.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{A.dtype.scalar_name} and other's dtype {B.dtype.scalar_name}")


@op(key="_linalg_lstsq", name="linalg_lstsq", outputs=("solution", "residuals", "rank", "singular_values"),
    check=_check_lstsq, unsupported_dtypes=not_implemented("linalg_lstsq_cpu", *NO_LAPACK), holomorphic=False,
    castable_out=("torch.linalg.lstsq", "solution", "solution", "rank", "singular_values"), expose=(),
    saved="b=B self=A solution")
def _linalg_lstsq(xp, A, B, *, rcond, driver):
    """The least-squares solution of A X = B of least norm; residuals, rank and singular values by LAPACK's driver."""
    return xp.lstsq(A, B, rcond, driver)


def _lstsq_vjp(xp, g0, g1, A, B, solution, rcond):
    vector = are_vectors(A.shape, B.shape)
    b, x, g = (xp.unsqueeze(v, -1) for v in (B, solution, g0)) if vector else (B, solution, g0)
    inverse = xp.linalg_pinv(A, atol=0.0, rtol=rcond, hermitian=False)
    by_b = xp.matmul(conj_transpose(xp, inverse), g)
    by_a = _pinv_vjp(xp, xp.matmul(g, conj_transpose(xp, b)), A, inverse)
    if 0 not in g1.shape:
        # the residuals are stationary in X: their gradient is by A and B alone
        residual_gradient = (xp.matmul(A, x) - b) * xp.unsqueeze(g1 * 2, -2)
        by_a = by_a + xp.matmul(residual_gradient, conj_transpose(xp, x))
        by_b = by_b - residual_gradient
    return by_a, xp.reshape(by_b, B.shape)


def _lstsq_vmap(xp, batch, A, B, rcond, driver):
    k = batch.k
    a, b = (x.shape[k:] if on else x.shape for x, on in zip((A, B), batch.on, strict=True))
    A, B = (x if on else batch.expand_levels(x) for x, on in zip((A, B), batch.on, strict=True))
    vector = are_vectors(a, b)
    solution, *extras = xp._linalg_lstsq(A, xp.unsqueeze(B, -1) if vector else B, rcond=rcond, driver=driver)
    extras = [x if x.shape[:k] == batch.sizes else batch.expand_levels(x) for x in extras]  # empty ones are not batched
    return xp.squeeze(solution, -1) if vector else solution, *extras


_linalg_lstsq.vmap(lambda xp, batch, A, B, *, rcond, driver: _lstsq_vmap(xp, batch, A, B, rcond, driver))
_linalg_lstsq.joint_vjp(lambda xp, g0, g1, A, B, solution, rcond: _lstsq_vjp(xp, g0, g1, A, B, solution, rcond))


# ----- by a Cholesky factor -------------------------------------------------------------


def _check_cholesky_solve(B, L):
    for name, x in (("b", B), ("u", L)):
        if len(x.shape) < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {len(x.shape)} dimensions instead")
    if B.dtype is not L.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {B.dtype.scalar_name} and A "
                           f"of type {L.dtype.scalar_name} instead.")
    (rows, columns), (n, m) = L.shape[-2:], B.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if n != rows:
        raise RuntimeError(f"Incompatible matrix sizes for cholesky_solve: each A matrix is {rows} by {columns} but "
                           f"each b matrix is {n} by {m}")


@op(node="CholeskySolveBackward0", holomorphic=False, check=_check_cholesky_solve,
    unsupported_dtypes=not_implemented("cholesky_solve_cpu", *NO_LAPACK), castable_out=("cholesky_solve", "result"),
    saved="input2 result upper")
def cholesky_solve(xp, input, input2, *, upper=False):
    """The solution X of A X = B, with A given by its Cholesky factor, `input2`, and B the input.

    Args:
        upper: whether `input2` is the upper factor Lᴴ.

    >>> import flambeau as torch
    >>> torch.cholesky_solve(torch.tensor([[8.]]), torch.tensor([[2.]]))
    tensor([[2.]])
    """
    return xp.cholesky_solve(input, input2, upper)


def _cholesky_solve_vjp(xp, g, B_shape, L, L_shape, out, upper):
    by_b = xp.cholesky_solve(g, L, upper=upper)
    pair = xp.matmul(by_b, conj_transpose(xp, out))
    pair = -(pair + conj_transpose(xp, pair))
    by_l = xp.matmul(L, pair) if upper else xp.matmul(pair, L)
    return xp.sum_to_size(by_b, B_shape), xp.sum_to_size(by_l, L_shape)


cholesky_solve.joint_vjp(lambda xp, g, input_shape, input2, input2_shape, out, upper: _cholesky_solve_vjp(
    xp, g, input_shape, input2, input2_shape, out, upper))
cholesky_solve.vmap(lambda xp, batch, input, input2, *, upper=False: _solve_batched_systems(
    xp, batch, lambda L, B: xp.cholesky_solve(B, L, upper=upper), input2, 1, input, 0, True))


@op(batching_rule="trailing", node="CholeskyInverseBackward0", holomorphic=False,
    check=lambda L: check_matrices("cholesky_inverse", L, square=True),
    unsupported_dtypes=not_implemented("cholesky_inverse_out_cpu", *NO_LAPACK),
    castable_out=("cholesky_inverse", "result"), saved="result self=L upper")
def cholesky_inverse(xp, L, *, upper=False):
    """The inverse of a matrix given by its Cholesky factor L.

    Args:
        upper: whether `L` is the upper factor Lᴴ.

    >>> import flambeau as torch
    >>> torch.cholesky_inverse(torch.tensor([[2.]]))
    tensor([[0.2500]])
    """
    return xp.cholesky_inverse(L, upper)


def _cholesky_inverse_vjp(xp, g, L, out, upper):
    middle = -xp.matmul(xp.matmul(out, g + conj_transpose(xp, g)), out)
    return xp.matmul(L, middle) if upper else xp.matmul(middle, L)


cholesky_inverse.vjp(L=lambda xp, g, L, out, upper: _cholesky_inverse_vjp(xp, g, L, out, upper))
