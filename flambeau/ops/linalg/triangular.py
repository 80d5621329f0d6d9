"""Triangular systems with the arguments of the deprecated `torch.triangular_solve`."""

from __future__ import annotations

from typing import Any

from ..declare import not_implemented, op
from .matrix_checks import NO_LAPACK, transpose_last


def _check(b: Any, A: Any) -> None:
    for name, x in (("b", b), ("A", A)):
        if len(x.shape) < 2:
            raise RuntimeError(f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has "
                               f"{len(x.shape)} dimensions instead")
    if b.dtype is not A.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {b.dtype.scalar_name} and A "
                           f"of type {A.dtype.scalar_name} instead.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} "
                           "matrices")
    if A.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"Incompatible matrix sizes for triangular_solve: each A matrix is {A.shape[-1]} by "
                           f"{A.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}")


@op(key="_triangular_solve", name="triangular_solve", outputs=("solution", "cloned_coefficient"), check=_check,
    node="TriangularSolveBackward0", holomorphic=False, exact_out=True, expose=(),
    unsupported_dtypes=not_implemented("triangular_solve_cpu", *NO_LAPACK),
    saved="A solution transpose unitriangular upper")
def _triangular_solve(xp, b, A, *, upper, transpose, unitriangular):
    """The solution X of A X = b, or Aᵀ X = b, and a copy of A."""
    matrix, flipped = (transpose_last(xp, A), not upper) if transpose else (A, upper)
    solution = xp.linalg_solve_triangular(matrix, b, upper=flipped, unitriangular=unitriangular)
    lead = solution.shape[:-2]
    return solution, xp.clone(xp.expand(A, (*lead, *A.shape[-2:])))


def _vjp(xp, g0, g1, A, b_shape, A_shape, solution, upper, transpose, unitriangular):
    matrix, flipped = (transpose_last(xp, A), not upper) if transpose else (A, upper)
    by_b = xp.linalg_solve_triangular(xp.conj(transpose_last(xp, matrix)), g0, upper=not flipped,
                                      unitriangular=unitriangular)
    x = xp.conj(transpose_last(xp, solution))
    by_a = -xp.matmul(by_b, x)
    if transpose:
        by_a = transpose_last(xp, by_a)
    diagonal = 1 if unitriangular else 0
    by_a = xp.triu(by_a, diagonal) if upper else xp.tril(by_a, -diagonal)
    return xp.sum_to_size(by_b, b_shape), xp.sum_to_size(by_a + g1, A_shape)


_triangular_solve.joint_vjp(lambda xp, g0, g1, A, b_shape, A_shape, solution, upper, transpose, unitriangular: _vjp(
    xp, g0, g1, A, b_shape, A_shape, solution, upper, transpose, unitriangular))


def _vmap(xp, batch, b, A, *, upper, transpose, unitriangular):
    b, A = (x if on else batch.expand_levels(x) for x, on in zip((b, A), batch.on, strict=True))
    ndim = max(len(b.shape), len(A.shape))
    b, A = (xp.reshape(x, (*x.shape[:batch.k], *(1,) * (ndim - len(x.shape)), *x.shape[batch.k:])) for x in (b, A))
    return xp._triangular_solve(b, A, upper=upper, transpose=transpose, unitriangular=unitriangular)


_triangular_solve.vmap(_vmap)
