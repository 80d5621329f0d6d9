"""LU and LDL factorizations, and the solution of linear systems with them, of batches of matrices (..., m, n).

Derivative formulas are stated in full (`holomorphic=False`). H is the conjugate transpose.
"""

from __future__ import annotations

from typing import Any

from ..declare import not_implemented, op
from .matrix_checks import LINALG_OPTIONS, NO_LAPACK, check_floating, check_matrices, conj_transpose

_INT32 = "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"


def _check_matrix(name: str) -> Any:
    def check(x: Any, *_: Any) -> None:
        if len(x.shape) < 2:
            raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(x.shape)} instead")

    return check


# ----- LU -----


@op(key="linalg_lu", outputs=("P", "L", "U"), check=_check_matrix("linalg.lu"), holomorphic=False,
    unsupported_dtypes=not_implemented("lu_cpu", *NO_LAPACK, empty=False), exact_out=True,
    saved="L P U pivot", **LINALG_OPTIONS)
def linalg_lu(xp, A, *, pivot=True):
    """The factorization A = P L U with partial pivoting.

    >>> import flambeau as torch
    >>> torch.linalg.lu(torch.tensor([[1., 2.], [2., 2.]])).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    return xp.lu(A, pivot)


def _lu_vjp(xp, g_l, g_u, p, low, up):
    """The gradient of A = P L U: of the square part by both factors, of what is wider or taller by one of them."""
    m, n, k = low.shape[-2], up.shape[-1], low.shape[-1]
    left, right = (Ellipsis, slice(0, k), slice(None)), (Ellipsis, slice(0, k))
    low1, up1 = xp._basic_index(low, key=left), xp._basic_index(up, key=right)
    by_l = xp.matmul(conj_transpose(xp, low1), xp._basic_index(g_l, key=left))
    by_u = xp.matmul(xp._basic_index(g_u, key=right), conj_transpose(xp, up1))
    low_h, up_h = conj_transpose(xp, low1), conj_transpose(xp, up1)
    rest = None
    if n > k:  # U₂ = L⁻¹ Pᴴ A₂
        key = (Ellipsis, slice(k, n))
        g2, up2 = xp._basic_index(g_u, key=key), xp._basic_index(up, key=key)
        by_l = by_l - xp.matmul(g2, conj_transpose(xp, up2))
        rest = xp.linalg_solve_triangular(low_h, g2, upper=True, unitriangular=True)
    if m > k:  # L₂ = (Pᴴ A)₂ U⁻¹
        key = (Ellipsis, slice(k, m), slice(None))
        g2, low2 = xp._basic_index(g_l, key=key), xp._basic_index(low, key=key)
        by_u = by_u - xp.matmul(conj_transpose(xp, low2), g2)
        rest = xp.linalg_solve_triangular(up_h, g2, upper=False, left=False)
    inner = xp.tril(by_l, -1) + xp.triu(by_u, 0)
    inner = xp.linalg_solve_triangular(up_h, inner, upper=False, left=False)
    total = xp.linalg_solve_triangular(low_h, inner, upper=True, unitriangular=True)
    if rest is not None:
        shape = (*total.shape[:-2], m, n)
        at = (Ellipsis, slice(k, n)) if n > k else (Ellipsis, slice(k, m), slice(None))
        total = (xp._embed(total, size=shape, key=(Ellipsis, slice(0, k), slice(0, k)))
                 + xp._embed(rest, size=shape, key=at))
    return xp.matmul(p, total)


linalg_lu.vjp(A=lambda xp, g1, g2, P, L, U: _lu_vjp(xp, g1, g2, P, L, U))


@op(outputs=("LU", "pivots", "info"), check=_check_matrix("torch.lu_factor"), holomorphic=False,
    unsupported_dtypes=not_implemented("lu_cpu", *NO_LAPACK, empty=False), exact_out=True,
    saved="LU pivot pivots", **LINALG_OPTIONS)
def linalg_lu_factor_ex(xp, A, *, pivot=True, check_errors=False):
    """The factorization A = P L U in compact form, and the 1-based index of the first zero on U's diagonal (0: none).

    Returns:
        LU: L below the diagonal, U from it on; pivots: the row, from 1 on, that each step swapped; info.

    >>> import flambeau as torch
    >>> torch.linalg.lu_factor_ex(torch.tensor([[1., 2.], [2., 2.]])).LU
    tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]])
    """
    return xp.lu_factor(A, pivot)


def _lu_factor_vjp(xp, g, LU, pivots):
    p, low, up = xp._lu_unpack(LU, pivots)
    k = min(LU.shape[-2:])
    g_l = xp.tril(xp._basic_index(g, key=(Ellipsis, slice(0, k))), -1)
    g_u = xp.triu(xp._basic_index(g, key=(Ellipsis, slice(0, k), slice(None))), 0)
    return _lu_vjp(xp, g_l, g_u, p, low, up)


linalg_lu_factor_ex.vjp(A=lambda xp, g0, LU, pivots: _lu_factor_vjp(xp, g0, LU, pivots))


def _check_lu_unpack(LU_data: Any, LU_pivots: Any) -> None:
    _check_matrix("torch.lu_unpack")(LU_data)
    if LU_pivots.dtype.name != "int32":
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                           + _INT32)


@op(key="_lu_unpack", name="lu_unpack", outputs=("P", "L", "U"), node="LuUnpackBackward0", holomorphic=False,
    check=_check_lu_unpack, nondifferentiable_inputs=("LU_pivots",), batching_rule="trailing", exact_out=True,
    expose=(), saved="LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2")
def _lu_unpack(xp, LU_data, LU_pivots, *, unpack_data=True, unpack_pivots=True):
    """The factors P, L and U of a compact factorization."""
    return xp.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


def _lu_unpack_vjp(xp, g_l, g_u, shape):
    m, n = shape[-2:]
    k = min(m, n)
    low = xp.tril(g_l, -1)
    up = xp.triu(g_u, 0)
    if n > k:
        low = xp._embed(low, size=shape, key=(Ellipsis, slice(0, k)))
    if m > k:
        up = xp._embed(up, size=shape, key=(Ellipsis, slice(0, k), slice(None)))
    return low + up


_lu_unpack.vjp(LU_data=lambda xp, g1, g2, LU_data_shape: _lu_unpack_vjp(xp, g1, g2, LU_data_shape))


def _check_lu_solve(LU: Any, pivots: Any, B: Any) -> None:
    check_floating("torch.linalg.lu_solve", LU, True)
    if LU.dtype is not B.dtype:
        raise RuntimeError("linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
                           f"{LU.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead")
    if pivots.dtype.name != "int32":
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_matrices("torch.linalg.lu_solve", LU, square=True)
    check_matrices("linalg.lu_solve", B, "B")
    if LU.shape[-1] != pivots.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if LU.shape[:-1] != pivots.shape:
        raise RuntimeError(f"linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots "
                           f"with shape {list(pivots.shape)} instead")


def _check_lu_solve_shapes(LU: Any, B: Any, left: bool) -> None:
    n, rows = LU.shape[-1], B.shape[-2 if left else -1]
    if n != rows:
        raise RuntimeError(f"linalg.lu_solve: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} "
                           f"= B ({n}x{n} and {B.shape[-2]}x{B.shape[-1]})")


@op(check=_check_lu_solve, unsupported_dtypes=not_implemented("linalg.lu_solve_cpu", *NO_LAPACK), holomorphic=False,
    node="LinalgLuSolveBackward0", nondifferentiable_inputs=("pivots",), expose=("linalg",), exact_out=True,
    saved="LU adjoint left pivots result")
def linalg_lu_solve(xp, LU, pivots, B, *, left=True, adjoint=False):
    """The solution X of A X = B, with A given by `linalg.lu_factor`.

    Args:
        left: whether A stands to the left of X.
        adjoint: whether Aᴴ takes the place of A.

    >>> import flambeau as torch
    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2., 0.], [0., 4.]]))
    >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[2.], [2.]]))
    tensor([[1.0000],
            [0.5000]])
    """
    _check_lu_solve_shapes(LU, B, left)
    return xp.lu_solve(LU, pivots, B, left, adjoint)


def _lu_solve_vjp(xp, g, LU, pivots, LU_shape, B_shape, out, left, adjoint):
    z = xp.linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)
    p, low, up = xp._lu_unpack(LU, pivots)
    # the gradient of A is minus the product of these two
    first, second = (z, out) if left else (out, z)
    if left != adjoint:
        first, second = (first, conj_transpose(xp, second)) if left else (
            conj_transpose(xp, second), first)
    elif left:
        first, second = second, conj_transpose(xp, first)
    else:
        first, second = conj_transpose(xp, first), second
    middle = -xp.matmul(conj_transpose(xp, p), xp.matmul(first, second))
    by_lu = (xp.tril(xp.matmul(middle, conj_transpose(xp, up)), -1)
             + xp.triu(xp.matmul(conj_transpose(xp, low), middle), 0))
    return xp.sum_to_size(by_lu, LU_shape), None, xp.sum_to_size(z, B_shape)


linalg_lu_solve.joint_vjp(lambda xp, g, LU, pivots, LU_shape, B_shape, out, left, adjoint: _lu_solve_vjp(
    xp, g, LU, pivots, LU_shape, B_shape, out, left, adjoint))


def _aligned(xp, batch, LU, pivots, B):
    """The operands of a solution with the batch dimensions in front, and as many others."""
    LU, pivots, B = (batch.expand_levels(x) if not on else x
                     for x, on in zip((LU, pivots, B), batch.on, strict=True))
    k = batch.k
    extra = len(B.shape) - len(LU.shape)
    ones = (1,) * abs(extra)
    if extra > 0:
        LU = xp.reshape(LU, (*LU.shape[:k], *ones, *LU.shape[k:]))
        pivots = xp.reshape(pivots, (*pivots.shape[:k], *ones, *pivots.shape[k:]))
    elif extra < 0:
        B = xp.reshape(B, (*B.shape[:k], *ones, *B.shape[k:]))
    return LU, pivots, B


linalg_lu_solve.vmap(lambda xp, batch, LU, pivots, B, *, left=True, adjoint=False: xp.linalg_lu_solve(
    *_aligned(xp, batch, LU, pivots, B), left=left, adjoint=adjoint))


# ----- LDL -----


def _check_ldl(A: Any) -> None:
    check_matrices("torch.linalg.ldl_factor_ex", A, square=True)
    check_floating("torch.linalg.ldl_factor_ex", A, True)


def _no_derivative(name):
    def vjp(xp, g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return vjp


def _no_derivative_of_first(name):
    def vjp(xp, g0):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return vjp


@op(outputs=("LD", "pivots", "info"), check=_check_ldl, node="NotImplemented", holomorphic=False,
    unsupported_dtypes=not_implemented("ldl_factor_kernel_cpu", *NO_LAPACK), exact_out=True, **LINALG_OPTIONS)
def linalg_ldl_factor_ex(xp, A, *, hermitian=False, check_errors=False):
    """The factorization A = L D Lᵀ of a symmetric matrix, and the 1-based index of the first zero in D (0: none).

    Args:
        hermitian: whether A is Hermitian: L D Lᴴ.

    Returns:
        LD: L and the blocks of D; pivots: the swapped rows, from 1 on, negative for blocks of size 2; info.

    >>> import flambeau as torch
    >>> torch.linalg.ldl_factor_ex(torch.tensor([[2., 2.], [2., 4.]])).LD
    tensor([[2., 0.],
            [1., 2.]])
    """
    return xp.ldl_factor(A, hermitian)


linalg_ldl_factor_ex.vjp(A=_no_derivative_of_first("linalg_ldl_factor_ex"))


def _check_ldl_solve(LD: Any, pivots: Any, B: Any) -> None:
    check_matrices("torch.linalg.ldl_solve", LD, square=True)
    check_floating("torch.linalg.ldl_solve", LD, True)
    if len(B.shape) < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
    if LD.shape[-1] != B.shape[-2]:
        raise RuntimeError("Incompatible matrix sizes for torch.linalg.ldl_solve: each LD matrix is "
                           f"{LD.shape[-1]} by {LD.shape[-1]} but each B matrix is {B.shape[-2]} by {B.shape[-1]}")
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError("torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got "
                           f"pivots with shape {list(pivots.shape)} instead")
    if pivots.dtype.is_floating_point or pivots.dtype.is_complex or pivots.dtype.name == "bool":
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {pivots.dtype.scalar_name}")
    if LD.dtype is not B.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {B.dtype.scalar_name} and A "
                           f"of type {LD.dtype.scalar_name} instead.")


@op(check=_check_ldl_solve, node="NotImplemented", holomorphic=False,
    unsupported_dtypes=not_implemented("ldl_solve_kernel_cpu", *NO_LAPACK), exact_out=True, expose=("linalg",))
def linalg_ldl_solve(xp, LD, pivots, B, *, hermitian=False):
    """The solution X of A X = B, with A given by `linalg.ldl_factor`.

    Args:
        hermitian: as given to `linalg.ldl_factor`.

    >>> import flambeau as torch
    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[2., 2.], [2., 4.]]))
    >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[4.], [6.]]))
    tensor([[1.],
            [1.]])
    """
    return xp.ldl_solve(LD, pivots, B, hermitian)


linalg_ldl_solve.vmap(lambda xp, batch, LD, pivots, B, *, hermitian=False: xp.linalg_ldl_solve(
    *_aligned(xp, batch, LD, pivots, B), hermitian=hermitian))
linalg_ldl_solve.vjp(LD=_no_derivative("linalg_ldl_solve"), B=_no_derivative("linalg_ldl_solve"))
