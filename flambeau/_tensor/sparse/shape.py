"""Shape operators of sparse tensors: transposes, selection, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import CompressedArray, CooArray, SparseArray, not_implemented
from ...devices import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ...kernels.sparse import decompress, sort_order
from ..dispatch.promotion import result_type
from ..tensor import Tensor, wrap
from .conversion import coalesced, to_coo_array
from .recording import is_coo, is_sparse, make

_SWAPPED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension, counted from the front.

    Raises:
        IndexError: out of range.
    """
    n = max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def transpose(a: Any, dim0: int, dim1: int) -> SparseArray:
    """The array with two dimensions exchanged."""
    i, j = wrap_dim(dim0, a.ndim), wrap_dim(dim1, a.ndim)
    if isinstance(a, CompressedArray) and a.dense_dim:
        raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")
    if i == j:
        return a.with_values(a.values)
    shape = list(a.shape)
    shape[i], shape[j] = shape[j], shape[i]
    if isinstance(a, CooArray):
        if i >= a.sparse_dim or j >= a.sparse_dim:
            raise RuntimeError(f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {a.sparse_dim}"
                               f", d0: {i}, d1: {j}")
        order = list(range(a.sparse_dim))
        order[i], order[j] = j, i
        return CooArray(a.indices[order], a.values, tuple(shape), a.coalesced and not a.indices.size)
    kinds = ["Batch" if d < a.batch_dim else "Sparse" for d in (i, j)]
    if kinds[0] != kinds[1]:
        raise RuntimeError("transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
                           f"{i}({kinds[0]}) and {j}({kinds[1]})")
    if kinds[0] == "Batch":
        compressed, plain, values = (x.swapaxes(i, j) for x in (a.compressed, a.plain, a.values))
        return CompressedArray(a.layout, compressed, plain, values, tuple(shape))
    values = a.values.swapaxes(a.batch_dim + 1, a.batch_dim + 2) if a.has_blocks else a.values
    return CompressedArray(_SWAPPED[a.layout], a.compressed, a.plain, values, tuple(shape))


def permute(a: Any, dims: Sequence[int]) -> SparseArray:
    """The array with its dimensions in another order, sparse and dense ones apart."""
    if len(dims) != a.ndim:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                           f"of the desired ordering of dimensions i.e. input.dim() = {a.ndim} is not equal to "
                           f"len(dims) = {len(dims)}")
    order = [wrap_dim(d, a.ndim) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if isinstance(a, CompressedArray):
        moved = [k for k, d in enumerate(order) if d != k]
        if not moved:
            return a.with_values(a.values)
        if len(moved) == 2:
            return transpose(a, *moved)
        raise not_implemented("permute", a.layout)
    n = a.sparse_dim
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed."
                           "Only transpositions within sparse and dense dimensions are supported.")
    values = a.values.transpose(0, *(d - n + 1 for d in order[n:]))
    # PyTorch keeps the flag where the first dimension, not counted from the end, stays first
    keeps = a.coalesced and bool(dims) and dims[0] == 0
    shape = tuple(a.shape[d] for d in order)
    indices = a.indices[order[:n]]
    if keeps:
        position = sort_order(indices, shape[:n])
        indices, values = indices[:, position], values[position]
    return CooArray(indices, values, shape, keeps or (a.coalesced and not dims))


def unsqueeze(a: Any, dim: int) -> CooArray:
    """The array with a dimension of size 1 inserted."""
    if not isinstance(a, CooArray):
        raise RuntimeError("Sparse CSR tensors do not have strides")
    n = a.ndim + 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    d = dim % n
    shape = (*a.shape[:d], 1, *a.shape[d:])
    if d <= a.sparse_dim:
        zeros = np.zeros((1, a.nnz), np.int64)
        return CooArray(np.concatenate([a.indices[:d], zeros, a.indices[d:]]), a.values, shape, a.coalesced)
    return CooArray(a.indices, np.expand_dims(a.values, d - a.sparse_dim + 1), shape, a.coalesced)


def _index_error(dim: int, index: int, a: Any) -> IndexError:
    return IndexError(f"select(): index {index} out of range for tensor of size {list(a.shape)} at dimension {dim}")


def select(a: Any, dim: int, index: int, name: str = "select") -> Any:
    """One slice of a dimension; dense where no sparse dimension is left."""
    if not a.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, a.ndim)
    size = a.shape[d]
    if not -size <= index < size:
        raise _index_error(dim, index, a)
    index %= size
    if isinstance(a, CompressedArray):
        if d < a.batch_dim:
            at = (slice(None),) * d + (index,)
            return CompressedArray(a.layout, a.compressed[at], a.plain[at], a.values[at],
                                   (*a.shape[:d], *a.shape[d + 1:]))
        if d >= a.batch_dim + 2:
            at = (slice(None),) * (a.values.ndim - a.ndim + d) + (index,)
            return CompressedArray(a.layout, a.compressed, a.plain, a.values[at], (*a.shape[:d], *a.shape[d + 1:]))
        if a.batch_dim:
            raise RuntimeError(f"{name}(): selecting sparse dimensions is not supported for batched sparse compressed "
                               "tensors.")
        if a.has_blocks and name == "select" and not _is_view_of_blocks(a, d, index):
            raise RuntimeError("select(): no view exists for the given input, consider using torch.select_copy.")
        picked = select(to_coo_array(a), d, index)
        return CooArray(picked.indices, picked.values, picked.shape, True)
    shape = (*a.shape[:d], *a.shape[d + 1:])
    if d >= a.sparse_dim:
        at = (slice(None),) * (d - a.sparse_dim + 1) + (index,)
        return CooArray(a.indices, a.values[at], shape, a.coalesced)
    kept = a.indices[d] == index
    values = a.values[kept]
    if a.sparse_dim == 1:
        if values.dtype.kind == "V":
            return dtypes.cast(dtypes.widen(values).sum(0), values.dtype)
        return np.asarray(values.sum(0, dtype=values.dtype))
    return CooArray(np.delete(a.indices[:, kept], d, 0), values, shape, a.coalesced)


def _is_view_of_blocks(a: CompressedArray, dim: int, index: int) -> bool:
    """Whether the elements of a row or column of blocks are evenly spaced in memory, which `select` requires."""
    block = a.block_shape
    if block[1 - dim] == 1:
        return True
    of_blocks = decompress(a.compressed) if (dim == 0) is a.by_row else a.plain
    chosen = np.flatnonzero(of_blocks == index // block[dim])
    if chosen.size < 2:
        return True
    strides = a.values.strides
    return bool(chosen[-1] - chosen[0] == chosen.size - 1 and strides[0] == block[1 - dim] * strides[2 - dim])


def narrow(a: Any, dim: int, start: int, length: int) -> CooArray:
    """Consecutive slices of a dimension."""
    if not a.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not 0 <= dim < a.ndim:
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {a.ndim}.")
    d, size = dim, a.shape[dim]
    if start < 0 or start + length > size:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}).")
    if not isinstance(a, CooArray):
        raise RuntimeError("Sparse CSR tensors do not have strides")
    shape = (*a.shape[:d], length, *a.shape[d + 1:])
    if d >= a.sparse_dim:
        at = (slice(None),) * (d - a.sparse_dim + 1) + (slice(start, start + length),)
        return CooArray(a.indices, a.values[at], shape, a.coalesced)
    kept = (a.indices[d] >= start) & (a.indices[d] < start + length)
    indices = a.indices[:, kept]
    indices[d] -= start
    return CooArray(indices, a.values[kept], shape, a.coalesced)


def index_select(a: Any, dim: int, index: Tensor) -> SparseArray:
    """The slices of a dimension at a vector of indices."""
    if not isinstance(a, CooArray):
        raise not_implemented("index_select", a.layout)
    if not a.ndim:
        raise IndexError("index_select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, a.ndim)
    i = index._array
    if is_sparse(index) or i.ndim != 1 or i.dtype != np.int64:
        raise IndexError("index_select() argument index must be 1-D strided (non-sparse) long-tensor.")
    size = a.shape[d]
    outside = i[(i < -size) | (i >= size)]
    if outside.size:
        raise IndexError(f"index_select(): index contains {int(outside[0])} that is out of range for tensor of size "
                         f"{list(a.shape)} at dimension {d}")
    i = i % size if size else i
    shape = (*a.shape[:d], i.size, *a.shape[d + 1:])
    if d >= a.sparse_dim:
        return CooArray(a.indices, np.take(a.values, i, d - a.sparse_dim + 1), shape, a.coalesced)
    own = a.indices[d]
    order = np.argsort(own, kind="stable")  # of the elements, by their index in this dimension
    first = np.searchsorted(own[order], i, "left")
    counts = np.searchsorted(own[order], i, "right") - first
    result = np.repeat(np.arange(i.size), counts)
    offsets = np.arange(result.size) - np.repeat(np.cumsum(counts) - counts, counts)
    source = order[np.repeat(first, counts) + offsets]
    indices = a.indices[:, source]
    indices[d] = result
    return CooArray(indices, a.values[source], shape, a.coalesced and d == 0)


def cat(tensors: Sequence[Tensor], dim: int) -> CooArray:
    """The concatenation of COO arrays."""
    for k, x in enumerate(tensors):
        if not is_coo(x):
            if is_sparse(x):
                raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {k}.")
    arrays: list[CooArray] = [x._array for x in tensors]  # type: ignore[misc]
    to = result_type(tensors).numpy
    first = arrays[0]
    d = wrap_dim(dim, first.ndim)
    for k, a in enumerate(arrays[1:], 1):
        if (a.sparse_dim, a.dense_dim) != (first.sparse_dim, first.dense_dim):
            raise RuntimeError("All tensors must have the same sparse_dim and dense_dim: "
                               f"{first.sparse_dim}, {first.dense_dim}, but tensor at position {k} has {a.sparse_dim}, "
                               f"{a.dense_dim}.")
        for each in range(first.ndim):
            if each != d and a.shape[each] != first.shape[each]:
                raise RuntimeError(f"All tensors must have the same shape: {list(first.shape)} (except in the "
                                   f"concatenating dimension), but found shape: {list(a.shape)} at position {k}")
    size = sum(a.shape[d] for a in arrays)
    shape = (*first.shape[:d], size, *first.shape[d + 1:])
    indices, values = [], []
    before = 0
    for a in arrays:
        places = a.indices
        v = dtypes.cast(a.values, to)
        if d < first.sparse_dim:
            if before:
                places = places.copy()
                places[d] += before
        else:
            padding = [(0, 0)] * v.ndim
            padding[d - first.sparse_dim + 1] = (before, size - before - a.shape[d])
            v = np.pad(v, padding)
        indices.append(places)
        values.append(v)
        before += a.shape[d]
    return CooArray(np.concatenate(indices, 1), np.concatenate(values), shape, False)


def stack(tensors: Sequence[Tensor], dim: int) -> CooArray:
    """COO arrays stacked in a new dimension."""
    n = tensors[0]._array.ndim + 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    for k, x in enumerate(tensors):
        if x._array.shape != tensors[0]._array.shape:
            raise RuntimeError("stack expects each tensor to be equal size, but got "
                               f"{list(tensors[0]._array.shape)} at entry 0 and {list(x._array.shape)} at entry {k}")
        if not is_coo(x):
            raise not_implemented("stack", x.layout)
    return cat([make(unsqueeze(x._array, dim)) for x in tensors], dim)


def broadcast_to(a: Any, shape: Sequence[int]) -> CooArray:
    """A COO array broadcast to a shape: elements are repeated."""
    a = to_coo_array(a)
    shape = tuple(shape)
    extra = len(shape) - a.ndim
    try:
        fits = extra >= 0 and np.broadcast_shapes(a.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(f"The expanded size of the tensor ({shape[-1] if shape else 1}) must match the existing "
                           f"size ({a.shape[-1] if a.ndim else 1}) at non-singleton dimension {len(shape) - 1}.  "
                           f"Target sizes: {list(shape)}.  Tensor sizes: {list(a.shape)}")
    indices, values = a.indices, a.values
    n = a.sparse_dim
    widths = [shape[d + extra] if a.shape[d] == 1 and shape[d + extra] != 1 else 0 for d in range(n)]
    values = np.broadcast_to(values, (a.nnz, *shape[extra + n:]))
    grown = [shape[d] for d in range(extra)] + [w or 1 for w in widths]
    repeats = prod(grown)
    grid = np.indices(grown).reshape(len(grown), -1) if grown else np.zeros((0, 1), np.int64)
    own = np.concatenate([np.zeros((extra, a.nnz), np.int64), indices])
    result = (np.repeat(own, repeats, 1) + np.tile(grid, a.nnz)).astype(np.int64)
    distinct = CooArray(result, np.repeat(values, repeats, 0), shape, False)
    if a.coalesced:
        return coalesced(distinct)
    return distinct


def unbind(a: Any, dim: int) -> list[Any]:
    """All slices of a dimension."""
    d = wrap_dim(dim, a.ndim)
    return [select(a, d, k) for k in range(a.shape[d])]


__all__ = ["broadcast_to", "cat", "index_select", "narrow", "permute", "select", "stack", "transpose", "unbind",
           "unsqueeze", "wrap", "wrap_dim"]
