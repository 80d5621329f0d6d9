"""Linear algebra: the extension `linalg`, and the four of its functions that are in the main namespace."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ... import dtypes
from ..._tensor import Tensor, functions
from .data_types import promoted
from .statistics import _accumulated, _axes, _flattened, _kept, _summed_dtype

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
           "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet",
           "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product, over the last two axes.

    Raises:
        ValueError: an array has no dimensions.

    >>> from flambeau.interop import array_api as xp
    >>> xp.matmul(xp.eye(2), xp.asarray([1., 2.]))
    tensor([1., 2.])
    """
    x1, x2 = promoted(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ValueError("matmul needs arrays with at least one dimension")
    return functions.matmul(x1, x2)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged.

    Raises:
        ValueError: the array has fewer than two dimensions.

    >>> from flambeau.interop import array_api as xp
    >>> xp.matrix_transpose(xp.ones((2, 3))).shape
    flambeau.Size([3, 2])
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose needs at least two dimensions, not an array of shape {tuple(x.shape)}")
    return functions.transpose(x, -2, -1)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The product summed over `axes`: the last and first ones, or pairs of axes.

    >>> from flambeau.interop import array_api as xp
    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
    flambeau.Size([2, 4])
    """
    x1, x2 = promoted(x1, x2)
    if not isinstance(axes, int):
        axes = tuple(list(each) for each in axes)
    return functions.tensordot(x1, x2, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The inner product along an axis, of which the first argument is conjugated.

    Raises:
        ValueError: the axis has not the same length in both.

    >>> from flambeau.interop import array_api as xp
    >>> xp.vecdot(xp.asarray([1, 2]), xp.asarray([3, 4]))
    tensor(11)
    """
    x1, x2 = promoted(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot of axes of lengths {x1.shape[axis]} and {x2.shape[axis]}")
    if x1.dtype.is_floating_point or x1.dtype.is_complex:
        return functions.linalg_vecdot(x1, x2, dim=axis)
    return functions.sum(x1 * x2, axis, dtype=x1.dtype)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of positive definite matrices.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4., 0.], [0., 9.]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    return functions.linalg_cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements.

    Raises:
        ValueError: the axis has not three elements.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    tensor([0, 0, 1])
    """
    x1, x2 = promoted(x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross product of axes of lengths {x1.shape[axis]} and {x2.shape[axis]}")
    x1, x2 = functions.broadcast_tensors(x1, x2)
    return functions.linalg_cross(x1, x2, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.det(xp.asarray([[1., 2.], [3., 4.]]))
    tensor(-2.)
    """
    return functions.linalg_det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of matrices.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return functions.diagonal(x, offset, -2, -1)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors of matrices, complex.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.eig(xp.eye(2)).eigenvalues
    tensor([1.+0.j, 1.+0.j])
    """
    return EigResult(*functions.linalg_eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues of matrices, complex.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.eigvals(xp.eye(2))
    tensor([1.+0.j, 1.+0.j])
    """
    return functions.linalg_eigvals(x)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.eigh(xp.eye(2)).eigenvalues
    tensor([1., 1.])
    """
    return EighResult(*functions.linalg_eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of Hermitian matrices.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.eigvalsh(xp.eye(2))
    tensor([1., 1.])
    """
    return functions.linalg_eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of matrices.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.]]))
    tensor([[0.5000]])
    """
    return functions.linalg_inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf, -inf.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[3., 4.]]))
    tensor(5.)
    """
    return functions.linalg_matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The n-th power of square matrices.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[2.]]), 3)
    tensor([[8.]])
    """
    return functions.linalg_matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values above `rtol` times the largest one.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.matrix_rank(xp.eye(2))
    tensor(2)
    """
    return functions.linalg_matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of the elements of two vectors.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    return functions.outer(*promoted(x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse; singular values below `rtol` times the largest one count as zero.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.]]))
    tensor([[0.5000]])
    """
    if rtol is None:
        rtol = max(x.shape[-2:]) * dtypes.finfo(x.dtype).eps
    return functions.linalg_pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """An orthonormal and an upper triangular factor.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.qr(xp.ones((3, 2))).R.shape
    flambeau.Size([2, 2])
    """
    return QRResult(*functions.linalg_qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.slogdet(xp.eye(2)).sign
    tensor(1.)
    """
    return SlogdetResult(*functions.linalg_slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of linear systems. `x2` is a vector only if it has one dimension.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.]]), xp.asarray([6.]))
    tensor([3.])
    """
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1:
        return functions.squeeze(functions.linalg_solve(x1, functions.unsqueeze(x2, -1)), -1)
    batch = functions.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])  # PyTorch would take batches of vectors
    return functions.linalg_solve(x1, functions.broadcast_to(x2, (*batch, *x2.shape[-2:])))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition, U diag(S) Vh.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.svd(xp.ones((3, 2)), full_matrices=False).U.shape
    flambeau.Size([3, 2])
    """
    return SVDResult(*functions.linalg_svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.svdvals(xp.eye(2))
    tensor([1., 1.])
    """
    return functions.linalg_svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of the diagonal of matrices.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
    tensor(5)
    """
    dtype = _summed_dtype(x, dtype)
    return functions.sum(_accumulated(diagonal(x, offset=offset), dtype), -1).to(dtype)


def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
                ord: Any = 2) -> Tensor:
    """The p-norm over axes, (∑|x|ᵖ)^(1/p); over all by default.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3., 4.]))
    tensor(5.)
    """
    axes = _axes(x, axis)
    if not axes:  # of each element alone
        absolute = functions.abs(x)
        return (absolute != 0).to(absolute.dtype) if ord == 0 else absolute
    flat = _flattened(x, axes)
    if flat.shape[-1] == 0 and (ord < 0 or math.isinf(ord)):
        raise ValueError(f"the norm of order {ord} of no elements is not defined")
    return _kept(functions.linalg_vector_norm(flat, ord, -1), x, axes, keepdims)
