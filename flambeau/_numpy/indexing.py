"""Elements by positions, conditions and order; triangles and diagonals."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from . import _dtypes_impl, _util
from ._normalizations import (
    ArrayLike,
    ArraySequence,
    CastingModes,
    DTypeLike,
    NDArray,
    OptionalArray,
    OptionalArrayOrScalar,
    OutArray,
    Unsupported,
    normalizer,
)


@normalizer
def copyto(dst: NDArray, src: ArrayLike, casting: CastingModes = "same_kind", where: Unsupported = None) -> Any:
    """Write elements into an array."""
    dst.copy_(_util.typecast_tensor(src, dst.dtype, casting))


@normalizer
def where(condition: ArrayLike, x: OptionalArrayOrScalar = None, y: OptionalArrayOrScalar = None, /) -> Any:
    """Elements of one of two arrays; of a condition alone the positions where it holds.

    Raises:
        ValueError: only one of the two is passed.

    >>> import flambeau._numpy as np
    >>> np.where([True, False], 1, 2)
    torch.ndarray([1, 2])
    """
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    condition = condition.to(torch.bool)
    return torch.where(condition) if x is None else torch.where(condition, x, y)


@normalizer
def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: OutArray = None,
         mode: Unsupported = "raise") -> Any:
    """Elements at positions along an axis."""
    (a,), axis = _util.axis_none_flatten(a, axis=axis)
    return a[(slice(None),) * _util.normalize_axis_index(axis, a.ndim) + (indices, ...)]


@normalizer
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: Any) -> Any:
    """Elements at positions of their own in each line along an axis."""
    (arr,), axis = _util.axis_none_flatten(arr, axis=axis)
    return torch.take_along_dim(arr, indices, _util.normalize_axis_index(axis, arr.ndim))


@normalizer
def put(a: NDArray, indices: ArrayLike, values: ArrayLike, mode: Unsupported = "raise") -> Any:
    """Write values, repeated as often as it takes, at positions of the flattened array."""
    values, count = values.type(a.dtype).flatten(), indices.numel()
    if count > values.numel():
        values = values.repeat(-(-count // values.numel()))
    a.put_(indices, values[:count].reshape(indices.shape))


@normalizer
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: Any) -> Any:
    """Write values at positions of their own in each line along an axis."""
    (flat,), axis = _util.axis_none_flatten(arr, axis=axis)
    indices, values = torch.broadcast_tensors(indices, values)
    result = torch.scatter(flat, _util.normalize_axis_index(axis, flat.ndim), indices,
                           _util.cast_if_needed(values, flat.dtype))
    flat.copy_(result.reshape(flat.shape))


@normalizer
def choose(a: ArrayLike, choices: ArraySequence, out: OutArray = None, mode: Unsupported = "raise") -> Any:
    """Elements, each of the array of this number."""
    stacked = torch.stack(torch.broadcast_tensors(*choices))
    grid = [torch.arange(size).reshape([-1 if at == place else 1 for at in range(stacked.ndim)])
            for place, size in enumerate(stacked.shape)]
    return stacked[(a, *grid[1:])].squeeze(0)


@normalizer
def unique(ar: ArrayLike, return_index: Unsupported = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: Unsupported = True) -> Any:
    """The distinct elements, in order."""
    (ar,), axis = _util.axis_none_flatten(ar, axis=axis)
    return torch.unique(ar, return_inverse=return_inverse, return_counts=return_counts,
                        dim=_util.normalize_axis_index(axis, ar.ndim))


@normalizer
def nonzero(a: ArrayLike) -> Any:
    """The positions of elements that are not zero, by dimension."""
    return torch.nonzero(a, as_tuple=True)


@normalizer
def argwhere(a: ArrayLike) -> Any:
    """The positions of elements that are not zero, by element."""
    return torch.argwhere(a)


@normalizer
def flatnonzero(a: ArrayLike) -> Any:
    """The positions in the flattened array of elements that are not zero."""
    return torch.flatten(a).nonzero(as_tuple=True)[0]


def _sortable(tensor: Any, axis: Any, kind: Any) -> tuple[Any, int, bool]:
    if tensor.is_complex():
        raise NotImplementedError(f"sorting {tensor.dtype} is not supported")
    (tensor,), axis = _util.axis_none_flatten(tensor, axis=axis)
    return tensor, _util.normalize_axis_index(axis, tensor.ndim), kind == "stable"


@normalizer
def sort(a: ArrayLike, axis: Any = -1, kind: Any = None, order: Unsupported = None) -> Any:
    """The elements in order."""
    a, dim, stable = _sortable(a, axis, kind)
    return torch.sort(a, dim=dim, stable=stable).values


@normalizer
def argsort(a: ArrayLike, axis: Any = -1, kind: Any = None, order: Unsupported = None) -> Any:
    """The positions of the elements in order."""
    a, dim, stable = _sortable(a, axis, kind)
    return torch.argsort(a, dim=dim, stable=stable)


@normalizer
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: OptionalArray = None) -> Any:
    """Where values would be inserted into ordered ones."""
    if a.is_complex():
        raise NotImplementedError(f"searchsorted with dtype={a.dtype}")
    return torch.searchsorted(a, v, side=side, sorter=sorter)


@normalizer
def tril(m: ArrayLike, k: int = 0) -> Any:
    """Elements at and below a diagonal; zeros above."""
    return torch.tril(m, k)


@normalizer
def triu(m: ArrayLike, k: int = 0) -> Any:
    """Elements at and above a diagonal; zeros below."""
    return torch.triu(m, k)


@normalizer
def tril_indices(n: int, k: int = 0, m: int | None = None) -> Any:
    """The positions at and below a diagonal."""
    return torch.tril_indices(n, n if m is None else m, offset=k)


@normalizer
def triu_indices(n: int, k: int = 0, m: int | None = None) -> Any:
    """The positions at and above a diagonal."""
    return torch.triu_indices(n, n if m is None else m, offset=k)


def _matrix_sizes(arr: Any) -> tuple[int, int]:
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return tuple(arr.shape)


@normalizer
def tril_indices_from(arr: ArrayLike, k: int = 0) -> Any:
    """`tril_indices` of a matrix."""
    return torch.tril_indices(*_matrix_sizes(arr), offset=k)


@normalizer
def triu_indices_from(arr: ArrayLike, k: int = 0) -> Any:
    """`triu_indices` of a matrix."""
    return torch.triu_indices(*_matrix_sizes(arr), offset=k)


@normalizer
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of two dimensions, without a copy."""
    return torch.diagonal(a, offset, _util.normalize_axis_index(axis1, a.ndim),
                          _util.normalize_axis_index(axis2, a.ndim))


@normalizer
def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike = None,
          out: OutArray = None) -> Any:
    """The sum of a diagonal."""
    return torch.diagonal(a, offset, dim1=axis1, dim2=axis2).sum(-1, dtype=dtype)


@normalizer
def diag(v: ArrayLike, k: int = 0) -> Any:
    """The diagonal of a matrix, or a matrix of this diagonal."""
    return torch.diag(v, k)


@normalizer
def diagflat(v: ArrayLike, k: int = 0) -> Any:
    """A matrix whose diagonal are all elements."""
    return torch.diagflat(v, k)


def _diagonal_positions(n: int, ndim: int) -> tuple[Any, ...]:
    return (torch.arange(n),) * ndim


@normalizer
def diag_indices(n: int, ndim: int = 2) -> Any:
    """The positions of the main diagonal."""
    return _diagonal_positions(n, ndim)


def _equal_size(arr: Any) -> int:
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return int(arr.shape[0])


@normalizer
def diag_indices_from(arr: ArrayLike) -> Any:
    """`diag_indices` of an array whose sizes are equal."""
    return _diagonal_positions(_equal_size(arr), arr.ndim)


@normalizer
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False) -> Any:
    """Write the main diagonal; with `wrap` again and again down a tall matrix.

    >>> import flambeau._numpy as np
    >>> np.fill_diagonal(np.zeros((2, 2), dtype=int), 5)
    torch.ndarray([[5, 0],
            [0, 5]])
    """
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if val.numel() == 0 and not wrap:
        a.fill_diagonal_(val)
        return a
    val = val.reshape(-1) if val.ndim == 0 else val
    if a.ndim > 2:
        a[_diagonal_positions(_equal_size(a), a.ndim)] = val[:a.shape[0]]
        return a
    rows, columns = a.shape
    if wrap and rows > columns:
        at = torch.arange(rows - rows // (columns + 1))
        a[at // columns * (columns + 1) + at % columns, at % columns] = val[:at.numel()]
    else:
        line = a.diagonal()
        line.copy_(val[:line.numel()])
    return a


@normalizer
def bincount(x: ArrayLike, /, weights: OptionalArray = None, minlength: int = 0) -> Any:
    """How often each number comes, or the sums of its weights."""
    x = x if x.numel() else x.new_empty(0, dtype=torch.int64)
    return torch.bincount(_util.typecast_tensor(x, _dtypes_impl.default_dtypes().int_dtype, "safe"), weights, minlength)


class IndexExpression:
    """An object whose index is returned.

    >>> s_[1:2], index_exp[0]
    (slice(1, 2, None), (0,))
    """

    def __init__(self, maketuple: bool) -> None:
        self.maketuple = maketuple

    def __getitem__(self, item: Any) -> Any:
        return (item,) if self.maketuple and not isinstance(item, tuple) else item


index_exp, s_ = IndexExpression(maketuple=True), IndexExpression(maketuple=False)

__all__ = ["IndexExpression", "argsort", "argwhere", "bincount", "choose", "copyto", "diag", "diag_indices",
           "diag_indices_from", "diagflat", "diagonal", "fill_diagonal", "flatnonzero", "index_exp", "nonzero", "put",
           "put_along_axis", "s_", "searchsorted", "sort", "take", "take_along_axis", "trace", "tril", "tril_indices",
           "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "unique", "where"]
