"""`torch.lobpcg`: the largest or smallest eigenvalues of a symmetric generalized eigenvalue problem, by iteration."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from .._tensor import Tensor, functions
from ..engine.grad_mode import no_grad
from .function import Function

__all__ = ["lobpcg"]


class LOBPCGAutogradFunction(Function):
    """The iteration with the derivative of the eigenpairs that it found."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, B: Tensor | None, X: Tensor, k: int, options: dict[str, Any]) -> Any:
        values, vectors = _batched(A, B, X, k, options)
        ctx.save_for_backward(A, B, values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, g_values: Tensor, g_vectors: Tensor) -> Any:
        # dλᵢ = xᵢᵀ dA xᵢ and dxᵢ = (λᵢ - A)⁺ dA xᵢ, with the other eigenpairs from a full decomposition
        A, B, values, vectors = ctx.saved_tensors
        if B is not None:
            raise ValueError("lobpcg.backward does not support backward with B != I yet.")
        all_values, basis = functions.linalg_eigh(A)
        gaps = values.unsqueeze(-2) - all_values.unsqueeze(-1)
        scale = functions.amax(functions.abs(all_values), -1, keepdim=True).unsqueeze(-1)
        near = functions.abs(gaps) <= 1e3 * dtypes.finfo(A.dtype).eps * scale
        inverse = functions.where(near, functions.zeros_like(gaps), 1 / functions.where(
            near, functions.ones_like(gaps), gaps))
        moved = basis @ (inverse * (basis.mT @ g_vectors))
        gradient = (vectors * g_values.unsqueeze(-2) + moved) @ vectors.mT
        return (gradient + gradient.mT) / 2, None, None, None, None


def _orthonormalized(basis: Tensor, B: Tensor | None) -> Tensor:
    """A B-orthonormal basis of the span of columns; directions that depend on the others are dropped.

    Source: A. Stathopoulos and K. Wu, "A block orthogonalization procedure with constant synchronization
    requirements", 2002 (SVQB), twice for accuracy.
    """
    for _ in range(2):
        norms = functions.linalg_vector_norm(basis, 2, 0)
        basis = basis[:, norms > 0] / norms[norms > 0]
        gram = basis.mT @ (basis if B is None else B @ basis)
        squares, rotation = functions.linalg_eigh(gram)
        kept = squares > 10 * dtypes.finfo(basis.dtype).eps * squares[-1]
        basis = basis @ (rotation[:, kept] / functions.sqrt(squares[kept]))
    return basis


def _iterate(A: Tensor, B: Tensor | None, X: Tensor, k: int, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The iteration for one problem.

    Source: A. V. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned
    conjugate gradient method", SIAM J. Sci. Comput. 23 (2), 2001.
    """
    sign = -1.0 if options["largest"] else 1.0
    preconditioner, tracker = options["iK"], options["tracker"]
    size = X.shape[1]
    X = _orthonormalized(X, B)
    norm_a = functions.linalg_vector_norm(A @ X) / functions.linalg_vector_norm(X)
    norm_b = 1.0 if B is None else functions.linalg_vector_norm(B @ X) / functions.linalg_vector_norm(X)
    values, rotation = functions.linalg_eigh(sign * (X.mT @ (A @ X)))
    values, X = sign * values[:size], X @ rotation[:, :size]
    direction: Tensor | None = None
    for step in range(options["niter"] + 1 if options["niter"] >= 0 else 2 ** 31):
        residual = A @ X - (X if B is None else B @ X) * values
        error = functions.linalg_vector_norm(residual, 2, 0) / (
            functions.linalg_vector_norm(X, 2, 0) * (norm_a + functions.abs(values) * norm_b))
        converged = error[:k] < options["tol"]
        if tracker is not None:
            tracker(_Progress(step, X, values, residual, error, int(converged.sum())))
        if bool(converged.all()) or step == options["niter"]:
            break
        active = residual[:, error >= options["tol"]]
        new = active if preconditioner is None else preconditioner @ active
        # the new directions are orthonormal to X, so that X's columns stay the first coordinates
        extra = new if direction is None else functions.cat([new, direction], 1)
        for _ in range(2):
            extra = extra - X @ (X.mT @ (extra if B is None else B @ extra))
        extra = _orthonormalized(extra, B)
        basis = functions.cat([X, extra], 1)
        product = basis.mT @ (A @ basis)
        small, rotation = functions.linalg_eigh(sign * (product + product.mT) / 2)
        rotation = rotation[:, :size]
        direction = extra @ rotation[X.shape[1]:]
        values, X = sign * small[:size], basis @ rotation
    return values[:k], X[:, :k]


class _Progress:
    """What a tracker is given after each iteration: `ivars`, `tvars`, `X`, `E`, `R` as PyTorch's worker has them."""

    def __init__(self, step: int, X: Tensor, E: Tensor, R: Tensor, error: Tensor, converged: int) -> None:
        self.X, self.E, self.R = X, E, R
        self.ivars = {"istep": step, "converged_count": converged}
        self.tvars = {"rerr": error}


def _batched(A: Tensor, B: Tensor | None, X: Tensor, k: int, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The iteration for each problem of a batch."""
    with no_grad():
        if A.dim() == 2:
            return _iterate(A.detach(), B, X, k, options)
        shape = A.shape[:-2]
        flat_a, flat_x = A.detach().reshape(-1, *A.shape[-2:]), X.reshape(-1, *X.shape[-2:])
        flat_b = None if B is None else functions.broadcast_to(B, A.shape).reshape(flat_a.shape)
        found = [_iterate(flat_a[i], None if flat_b is None else flat_b[i], flat_x[i], k, options)
                 for i in range(len(flat_a))]
        return (functions.stack([values for values, _ in found]).reshape(*shape, k),
                functions.stack([vectors for _, vectors in found]).reshape(*shape, -1, k))


def lobpcg(A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
           iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
           method: str | None = None, tracker: Any = None, ortho_iparams: dict[str, int] | None = None,
           ortho_fparams: dict[str, float] | None = None,
           ortho_bparams: dict[str, bool] | None = None) -> tuple[Tensor, Tensor]:
    """The k largest or smallest eigenvalues and their eigenvectors, A x = λ B x.

    The signs of eigenvectors, and those of equal eigenvalues, depend on the first guess.

    Args:
        A: (*, m, m), symmetric; dense, or a sparse matrix.
        k: the number of eigenpairs, at most m / 3; default: the columns of X, or 1.
        B: (*, m, m), symmetric positive definite; default: the identity.
        X: (*, m, n), the first guess of eigenvectors; default: random.
        n: the number of columns of a random guess; default: k.
        iK: (m, m), a preconditioner.
        niter: the most iterations, -1: without limit; default: 1000.
        tol: the relative error of a converged pair; default: the square root of the dtype's epsilon.
        largest: whether the largest eigenvalues are sought (default), or the smallest.
        method: "basic" or "ortho"; both orthogonalize.
        tracker: called after each iteration, with an object that has `X`, `E`, `R`, `ivars` and `tvars`.
        ortho_iparams, ortho_fparams, ortho_bparams: of PyTorch's orthogonalization; no effect.

    Raises:
        ValueError: k is larger than m / 3, or a gradient is asked for with B.
        AssertionError: shapes do not fit.

    Source: A. V. Knyazev, SIAM J. Sci. Comput. 23 (2), 2001.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.lobpcg(torch.diag(torch.arange(1., 10.)), k=2)[0].round(decimals=3)
    tensor([9., 8.])
    """
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the "
                         f"number of requested eigenpairs (={n})")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', not {method!r}")
    kind = A.dtype if A.dtype.is_floating_point else dtypes.get_default_dtype()
    if X is None:
        X = functions.randn(*A.shape[:-2], m, max(n, k), dtype=kind)
    elif tuple(X.shape) != (*A.shape[:-2], m, n):
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(*A.shape[:-2], m, n)}")
    options = {"iK": iK, "niter": 1000 if niter is None else niter, "largest": largest is None or largest,
               "tol": dtypes.finfo(kind).eps ** 0.5 if tol is None else tol, "tracker": tracker}
    if A.requires_grad or (B is not None and B.requires_grad):
        symmetric = (A + A.mT) / 2
        return LOBPCGAutogradFunction.apply(symmetric, None if B is None else (B + B.mT) / 2, X, k, options)
    return _batched(A, B, X, k, options)
