"""Randomized singular value decompositions of low rank (Halko, Martinsson and Tropp, 2009)."""

from __future__ import annotations

from ...dtypes import float16, float32, float64
from ...engine.tensor_interface import layer
from ..tensor import Tensor

__all__ = ["pca_lowrank", "svd_lowrank"]


def get_approximate_basis(A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None) -> Tensor:
    """An orthonormal basis of q columns that nearly spans the range of A - M, by subspace iteration (algorithm 4.4).

    Args:
        A: (..., m, n).
        q: the number of columns.
        niter: the number of subspace iterations, 2 by default.
        M: (..., m, n), 0 by default.

    Returns:
        (..., m, q).

    >>> import flambeau as torch
    >>> from flambeau._tensor.linalg.lowrank import get_approximate_basis
    >>> get_approximate_basis(torch.ones(4, 3), 1).abs()
    tensor([[0.5000],
            [0.5000],
            [0.5000],
            [0.5000]])
    """
    fn = layer.functions
    if M is not None:
        A = A - M
    dtype = A.dtype if A.dtype in (float16, float64) or A.dtype.is_complex else float32
    random = fn.randn(A._array.shape[-1], q, dtype=dtype, device=A.device)
    basis = fn.linalg_qr(fn.matmul(A, random)).Q
    for _ in range(2 if niter is None else niter):
        basis = fn.linalg_qr(fn.matmul(A.mH, basis)).Q
        basis = fn.linalg_qr(fn.matmul(A, basis)).Q
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2,
                M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """A singular value decomposition of rank q: U, S and V with A - M ≈ U diag(S) Vᴴ.

    Args:
        A: (..., m, n).
        q: slightly more than the rank of A - M.
        niter: the number of subspace iterations.
        M: broadcast to A, 0 by default.

    Returns:
        U: (..., m, q); S: (..., q); V: (..., n, q).

    >>> import flambeau as torch
    >>> torch.svd_lowrank(torch.ones(4, 3), q=2)[1].round()
    tensor([3., 0.])
    """
    fn = layer.functions
    q = 6 if q is None else q
    m, n = A._array.shape[-2:]
    if M is not None:
        A = A - fn.broadcast_to(M, A._array.shape)
    if m < n:
        A = A.mH
    basis = get_approximate_basis(A, q, niter)
    u, s, vh = fn.linalg_svd(fn.matmul(basis.mH, A), full_matrices=False)
    u, v = fn.matmul(basis, u), vh.mH
    return (v, s, u) if m < n else (u, s, v)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True,
                niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Principal component analysis: `svd_lowrank` of A without the means of its columns.

    Args:
        A: (..., m, n): m samples of n features.
        q: slightly more than the rank, min(6, m, n) by default.
        center: whether the means are subtracted.
        niter: the number of subspace iterations.

    Returns:
        U: (..., m, q); S: (..., q); V: (..., n, q), whose columns are the principal directions.

    Raises:
        ValueError: `q` or `niter` is out of range.

    >>> import flambeau as torch
    >>> torch.pca_lowrank(torch.tensor([[0., 1.], [2., 3.]]), q=1)[1]
    tensor([2.])
    """
    m, n = A._array.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = A - layer.functions.mean(A, dim=(-2,), keepdim=True)
    return svd_lowrank(A, q, niter)
