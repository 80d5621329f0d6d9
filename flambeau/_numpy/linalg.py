"""`numpy.linalg` on tensors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import flambeau as torch

from . import _dtypes_impl, _util
from ._normalizations import ArrayLike, ArraySequence, KeepDims, normalizer


class LinAlgError(Exception):
    """A matrix that a function of linear algebra is not defined for."""


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except torch.linalg.LinAlgError as error:
            raise LinAlgError(*error.args) from error

    return wrapped


def _inexact(*tensors: Any) -> tuple[Any, ...]:
    """The tensors in their common dtype, integers in the default one of floating point."""
    dtype = _dtypes_impl.result_type_impl(*tensors)
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = _dtypes_impl.default_dtypes().float_dtype
    return tuple(_util.cast_if_needed(each, dtype) for each in tensors)


@normalizer
@_raising
def matrix_power(a: ArrayLike, n: int) -> Any:
    """The n-th power of a square matrix."""
    return torch.linalg.matrix_power(*_inexact(a), n)


@normalizer
@_raising
def multi_dot(inputs: ArraySequence, *, out: Any = None) -> Any:
    """The product of several matrices, in the order of the fewest operations."""
    return torch.linalg.multi_dot(inputs)


@normalizer
@_raising
def solve(a: ArrayLike, b: ArrayLike) -> Any:
    """The solution of a linear system.

    Raises:
        LinAlgError: the matrix is singular.

    >>> solve([[2, 0], [0, 4]], [2, 2])
    torch.ndarray([1.0000, 0.5000], dtype=float64)
    """
    return torch.linalg.solve(*_inexact(a, b))


@normalizer
@_raising
def lstsq(a: ArrayLike, b: ArrayLike, rcond: Any = None) -> Any:
    """The least-squares solution of a linear system."""
    return torch.linalg.lstsq(*_inexact(a, b), rcond=rcond, driver="gelsd")


@normalizer
@_raising
def inv(a: ArrayLike) -> Any:
    """The inverse."""
    return torch.linalg.inv(*_inexact(a))


@normalizer
@_raising
def pinv(a: ArrayLike, rcond: Any = 1e-15, hermitian: bool = False) -> Any:
    """The pseudo-inverse."""
    return torch.linalg.pinv(*_inexact(a), rtol=rcond, hermitian=hermitian)


@normalizer
@_raising
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Any:
    """The solution of a system of tensors."""
    return torch.linalg.tensorsolve(*_inexact(a, b), dims=axes)


@normalizer
@_raising
def tensorinv(a: ArrayLike, ind: int = 2) -> Any:
    """The inverse of a tensor."""
    return torch.linalg.tensorinv(*_inexact(a), ind=ind)


@normalizer
@_raising
def det(a: ArrayLike) -> Any:
    """The determinant."""
    return torch.linalg.det(*_inexact(a))


@normalizer
@_raising
def slogdet(a: ArrayLike) -> Any:
    """The sign and the logarithm of the determinant."""
    return tuple(torch.linalg.slogdet(*_inexact(a)))


@normalizer
@_raising
def cond(x: ArrayLike, p: Any = None) -> Any:
    """The condition number; infinity where it is not a number."""
    if math.prod(x.shape[-2:]) == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    result = torch.linalg.cond(*_inexact(x), p=p)
    return torch.where(torch.isnan(result), float("inf"), result)


@normalizer
@_raising
def matrix_rank(a: ArrayLike, tol: Any = None, hermitian: bool = False) -> Any:
    """The number of singular values above a tolerance."""
    a, = _inexact(a)
    if a.ndim < 2:
        return int((a != 0).any())
    tolerances = {"atol": 0, "rtol": max(a.shape[-2:]) * torch.finfo(a.dtype).eps} if tol is None else {
        "atol": tol, "rtol": 0}
    return torch.linalg.matrix_rank(a, hermitian=hermitian, **tolerances)


@normalizer
@_raising
def norm(x: ArrayLike, ord: Any = None, axis: Any = None, keepdims: KeepDims = False) -> Any:
    """The norm of a vector or matrix."""
    return torch.linalg.norm(*_inexact(x), ord=ord, dim=axis)


@normalizer
@_raising
def cholesky(a: ArrayLike) -> Any:
    """The lower Cholesky factor."""
    return torch.linalg.cholesky(*_inexact(a))


@normalizer
@_raising
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """The QR decomposition; of `mode` "r" the second factor alone."""
    result = torch.linalg.qr(*_inexact(a), mode=mode)
    return result.R if mode == "r" else tuple(result)


@normalizer
@_raising
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition, or the singular values alone."""
    a, = _inexact(a)
    return tuple(torch.linalg.svd(a, full_matrices=full_matrices)) if compute_uv else torch.linalg.svdvals(a)


def _real_if_possible(a: Any, values: Any, *others: Any) -> tuple[Any, ...]:
    if not a.is_complex() and (values.imag == 0).all():
        return tuple(each.real for each in (values, *others))
    return (values, *others)


@normalizer
@_raising
def eig(a: ArrayLike) -> Any:
    """Eigenvalues and eigenvectors, real ones where all values are."""
    return _real_if_possible(a, *torch.linalg.eig(*_inexact(a)))


@normalizer
@_raising
def eigvals(a: ArrayLike) -> Any:
    """Eigenvalues, real ones where all are."""
    return _real_if_possible(a, torch.linalg.eigvals(*_inexact(a)))[0]


@normalizer
@_raising
def eigh(a: ArrayLike, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    return tuple(torch.linalg.eigh(*_inexact(a), UPLO=UPLO))


@normalizer
@_raising
def eigvalsh(a: ArrayLike, UPLO: str = "L") -> Any:
    """Eigenvalues of a Hermitian matrix."""
    return torch.linalg.eigvalsh(*_inexact(a), UPLO=UPLO)


__all__ = ["LinAlgError", "cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
           "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "svd", "tensorinv",
           "tensorsolve"]
