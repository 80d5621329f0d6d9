"""`torch._linalg_utils`: products, forms, bases and eigenpairs of matrices that may be sparse."""

from __future__ import annotations

from typing import Any

from ...devices import sparse_coo
from ...dtypes import dtype, float16, float32, float64
from ...engine.tensor_interface import layer
from ..tensor import Tensor
from .removed import eig as eig
from .removed import lstsq as lstsq
from .removed import matrix_rank as matrix_rank
from .removed import solve as solve
from .removed import symeig as _symeig


def is_sparse(A: Any) -> bool:
    """Whether a tensor is sparse and in COO layout.

    Raises:
        TypeError: not a tensor.

    >>> import flambeau as torch
    >>> from flambeau._tensor.linalg.bilinear_forms import is_sparse
    >>> is_sparse(torch.eye(2)), is_sparse(torch.eye(2).to_sparse())
    (False, True)
    """
    if not isinstance(A, Tensor):
        raise TypeError(f"expected Tensor but got {type(A)}")
    return A.layout is sparse_coo


def get_floating_dtype(A: Tensor) -> dtype:
    """The dtype of a tensor of real floating point numbers; float32 for others.

    >>> import flambeau as torch
    >>> from flambeau._tensor.linalg.bilinear_forms import get_floating_dtype
    >>> get_floating_dtype(torch.arange(2))
    flambeau.float32
    """
    return A.dtype if A.dtype in (float16, float32, float64) else float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """The product A B, where None stands for the identity and A may be sparse.

    >>> import flambeau as torch
    >>> from flambeau._tensor.linalg.bilinear_forms import matmul
    >>> matmul(None, torch.ones(1, 2)), matmul(torch.eye(1).to_sparse(), torch.ones(1, 2))
    (tensor([[1., 1.]]), tensor([[1., 1.]]))
    """
    if A is None:
        return B
    if is_sparse(A):
        from ..sparse.products import sparse_mm

        return sparse_mm(A, B)
    return layer.functions.matmul(A, B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """The bilinear form Xᵀ A Y.

    >>> import flambeau as torch
    >>> from flambeau._tensor.linalg.bilinear_forms import bform
    >>> bform(torch.ones(2, 1), None, torch.ones(2, 1))
    tensor([[2.]])
    """
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """The quadratic form Sᵀ A S.

    >>> import flambeau as torch
    >>> from flambeau._tensor.linalg.bilinear_forms import qform
    >>> qform(2 * torch.eye(2), torch.ones(2, 1))
    tensor([[4.]])
    """
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthonormal basis of the columns of A, from its QR decomposition.

    >>> import flambeau as torch
    >>> from flambeau._tensor.linalg.bilinear_forms import basis
    >>> basis(torch.tensor([[-2.], [0.]])).abs()
    tensor([[1.],
            [0.]])
    """
    return layer.functions.linalg_qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """The eigenvalues and eigenvectors of a symmetric matrix, from the smallest one or from the largest.

    >>> import flambeau as torch
    >>> from flambeau._tensor.linalg.bilinear_forms import symeig
    >>> symeig(torch.diag(torch.tensor([1., 2.])), largest=True)[0]
    tensor([2., 1.])
    """
    fn = layer.functions
    values, vectors = fn.linalg_eigh(A, UPLO="U")
    return (fn.flip(values, (-1,)), fn.flip(vectors, (-1,))) if largest else (values, vectors)


__all__ = ["_symeig", "basis", "bform", "eig", "get_floating_dtype", "is_sparse", "lstsq", "matmul", "matrix_rank",
           "qform", "solve", "symeig"]
