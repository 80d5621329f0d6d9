"""Searching, sorting, indexing and sets."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

from ... import dtypes
from ..._tensor import Tensor, functions
from .data_types import promoted
from .statistics import _axes


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first largest element along an axis, or of the flattened array.

    >>> from flambeau.interop import array_api as xp
    >>> xp.argmax(xp.asarray([1, 3, 2]))
    tensor(1)
    """
    if axis is None and keepdims:
        return functions.reshape(functions.argmax(x), (1,) * x.ndim)
    return functions.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first smallest element along an axis, or of the flattened array.

    >>> from flambeau.interop import array_api as xp
    >>> xp.argmin(xp.asarray([1, 3, 2]))
    tensor(0)
    """
    if axis is None and keepdims:
        return functions.reshape(functions.argmin(x), (1,) * x.ndim)
    return functions.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None,
                  keepdims: builtins.bool = False) -> Tensor:
    """The number of elements over axes that are not zero.

    >>> from flambeau.interop import array_api as xp
    >>> xp.count_nonzero(xp.asarray([0, 3, 2]))
    tensor(2)
    """
    axes = _axes(x, axis)
    found = (x != 0).to(dtypes.int64)
    return functions.sum(found, axes, keepdim=keepdims) if axes else found


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, one array for each axis.

    Raises:
        ValueError: the array has no dimensions.

    >>> from flambeau.interop import array_api as xp
    >>> xp.nonzero(xp.asarray([0, 3, 2]))
    (tensor([1, 2]),)
    """
    if x.ndim == 0:
        raise ValueError("nonzero() needs an array with at least one dimension")
    return tuple(functions.nonzero(x, as_tuple=True))


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of `x1` where the condition holds, of `x2` elsewhere.

    >>> from flambeau.interop import array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    tensor([1, 0])
    """
    x1, x2 = promoted(x1, x2)
    return functions.where(condition, x1, x2)


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The positions at which the elements of `x2` would keep the sorted array `x1` in order.

    Args:
        side: "left": before equal elements; "right": after them.
        sorter: indices that sort `x1`, if it is not sorted.

    >>> from flambeau.interop import array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]))
    tensor([1, 2])
    """
    x1, x2 = promoted(x1, x2)
    if sorter is not None:
        x1 = functions.take(x1, sorter)
    return functions.searchsorted(x1, x2, side=side)


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The indices that sort along an axis.

    >>> from flambeau.interop import array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return functions.sort(x, dim=axis, descending=descending, stable=stable)[1]


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The elements sorted along an axis.

    >>> from flambeau.interop import array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True)
    tensor([3, 2, 1])
    """
    return functions.sort(x, dim=axis, descending=descending, stable=stable)[0]


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices along an axis at these indices, a 1-d array.

    Raises:
        ValueError: no axis, and the array has not one dimension.

    >>> from flambeau.interop import array_api as xp
    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0]))
    tensor([30, 10])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"axis must be given for an array of shape {tuple(x.shape)}")
        axis = 0
    length = x.shape[axis]
    at = functions.where(indices < 0, indices + length, indices)
    if at.ndim == 1:
        return functions.index_select(x, axis, at)
    out = functions.index_select(x, axis, functions.reshape(at, (-1,)))
    axis %= x.ndim
    return functions.reshape(out, (*x.shape[:axis], *at.shape, *x.shape[axis + 1:]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements along an axis at indices of the same rank.

    >>> from flambeau.interop import array_api as xp
    >>> xp.take_along_axis(xp.asarray([[3, 1]]), xp.asarray([[1]]))
    tensor([[1]])
    """
    at = functions.where(indices < 0, indices + x.shape[axis], indices).to(dtypes.int64)
    return functions.take_along_dim(x, at, axis)


def isin(x1: Any, x2: Any, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether elements of `x1` are in `x2`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.isin(xp.asarray([1, 2]), xp.asarray([2, 3]))
    tensor([False,  True])
    """
    x1, x2 = promoted(x1, x2)
    return functions.isin(x1, x2, invert=invert)


def _unique(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values, first indices, inverse indices and counts; each NaN is a value of its own.

    NaN is sorted behind all numbers, and two zeros are one value.
    """
    flat = functions.reshape(x, (-1,))
    if flat.dtype.is_complex:  # lexicographic order: by the imaginary part, then stably by the real part
        order = functions.sort(functions.imag(flat), stable=True)[1]
        order = order[functions.sort(functions.real(flat)[order], stable=True)[1]]
        ordered = flat[order]
    else:
        ordered, order = functions.sort(flat, stable=True)
    count = flat.numel()
    first = functions.ones(count, dtype=dtypes.bool_)
    if count > 1:
        first[1:] = ordered[1:] != ordered[:-1]
    group = functions.cumsum(first.to(dtypes.int64), 0) - 1
    inverse = functions.empty(count, dtype=dtypes.int64)
    inverse[order] = group
    starts = functions.nonzero(first, as_tuple=True)[0]
    ends = functions.cat([starts[1:], functions.full((builtins.min(count, 1),), count, dtype=dtypes.int64)])
    return ordered[first], order[first], functions.reshape(inverse, tuple(x.shape)), ends - starts


def unique_all(x: Tensor, /) -> UniqueAll:
    """Distinct elements, where each is first, which one each element is, and how often each occurs.

    >>> from flambeau.interop import array_api as xp
    >>> xp.unique_all(xp.asarray([2, 1, 2])).counts
    tensor([1, 2])
    """
    return UniqueAll(*_unique(x))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Distinct elements and how often each occurs.

    >>> from flambeau.interop import array_api as xp
    >>> xp.unique_counts(xp.asarray([2, 1, 2])).counts
    tensor([1, 2])
    """
    values, _, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Distinct elements and which one each element is.

    >>> from flambeau.interop import array_api as xp
    >>> xp.unique_inverse(xp.asarray([2, 1, 2])).inverse_indices
    tensor([1, 0, 1])
    """
    values, _, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """Distinct elements.

    >>> from flambeau.interop import array_api as xp
    >>> xp.unique_values(xp.asarray([2, 1, 2]))
    tensor([1, 2])
    """
    return _unique(x)[0]
