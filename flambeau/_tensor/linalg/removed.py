"""Functions that PyTorch removed, which raise its errors and say what takes their place."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]

_REMOVED = "This function was deprecated since version 1.9 and is now removed."


def eig(self: Tensor, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Removed: use `linalg.eig`.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.linalg.eig(torch.tensor([[2.]])).eigenvalues
    tensor([2.+0.j])
    """
    raise RuntimeError(f"{_REMOVED} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather "
                       "than real tensors mimicking complex tensors.\n\nL, _ = torch.eig(A) should be replaced with:\n"
                       "L_complex = torch.linalg.eigvals(A)\n\nand\n\nL, V = torch.eig(A, eigenvectors=True) should be "
                       "replaced with:\nL_complex, V_complex = torch.linalg.eig(A)")


def symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> Any:
    """Removed: use `linalg.eigh`.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2.]]))
    tensor([2.])
    """
    raise RuntimeError(f"{_REMOVED} The default behavior has changed from using the upper triangular portion of the "
                       "matrix by default to using the lower triangular portion.\n\nL, _ = torch.symeig(A, upper="
                       "upper) should be replaced with:\nL = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')\n\n"
                       "and\n\n"
                       "L, V = torch.symeig(A, eigenvectors=True) should be replaced with:\nL, V = "
                       "torch.linalg.eigh(A, UPLO='U' if upper else 'L')")


def lstsq(input: Tensor, A: Tensor, *, out: Any = None) -> Any:
    """Removed: use `linalg.lstsq`.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.linalg.lstsq(torch.tensor([[2.]]), torch.tensor([[4.]])).solution
    tensor([[2.]])
    """
    raise RuntimeError(f"{_REMOVED} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n"
                       "`torch.linalg.lstsq` has reversed arguments and does not return the QR decomposition in the "
                       "returned tuple (although it returns other information about the problem).\n\nTo get the QR "
                       "decomposition consider using `torch.linalg.qr`.\n\nThe returned solution in `torch.lstsq` "
                       "stored the residuals of the solution in the last m - n columns of the returned value whenever "
                       "m > n. In torch.linalg.lstsq, the residuals are in the field 'residuals' of the returned named "
                       "tuple.\n\nThe unpacking of the solution, as in\nX, _ = torch.lstsq(B, A).solution[:A.size(1)]\n"
                       "should be replaced with:\nX = torch.linalg.lstsq(A, B).solution")


def solve(input: Tensor, A: Tensor, *, out: Any = None) -> Any:
    """Removed: use `linalg.solve`.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.linalg.solve(torch.tensor([[2.]]), torch.tensor([4.]))
    tensor([2.])
    """
    raise RuntimeError(f"{_REMOVED} `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` "
                       "has its arguments reversed and does not return the LU factorization.\n\nTo get the LU "
                       "factorization see `torch.lu`, which can be used with `torch.lu_solve` or `torch.lu_unpack`.\n"
                       "X = torch.solve(B, A).solution should be replaced with:\nX = torch.linalg.solve(A, B)")


def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> Tensor:
    """Removed: use `linalg.matrix_rank`.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_rank(torch.eye(2))
    tensor(2)
    """
    raise RuntimeError(f"{_REMOVED}\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter "
                       "'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'.")


def _lstsq_method(self: Tensor, other: Tensor) -> Any:
    """Removed: use `linalg.lstsq`."""
    return lstsq(self, other)


def _solve_method(self: Tensor, other: Tensor) -> Any:
    """Removed: use `linalg.solve`."""
    return solve(self, other)


def _symeig_method(self: Tensor, eigenvectors: bool = False) -> Any:
    """Removed: use `linalg.eigh`."""
    return symeig(self, eigenvectors=eigenvectors)


def _eig_method(self: Tensor, eigenvectors: bool = False) -> Any:
    """Removed: use `linalg.eig`."""
    return eig(self, eigenvectors=eigenvectors)


METHODS: dict[str, Any] = {"eig": _eig_method, "lstsq": _lstsq_method, "solve": _solve_method, "symeig": _symeig_method}
for _name, _method in METHODS.items():
    _method.__name__ = _method.__qualname__ = _name
    _method.__doc__ = globals()[_name].__doc__
