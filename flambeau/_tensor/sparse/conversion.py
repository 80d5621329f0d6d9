"""Conversions between layouts: `to_dense`, `to_sparse` and its variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import LAYOUT_NAMES, CompressedArray, CooArray, SparseArray
from ...devices import layout as layout_type
from ...devices import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ...engine.grad_mode import grad_mode
from ...kernels.sparse import coalesce as sum_duplicates
from ...kernels.sparse_formats import (
    compressed_to_coo,
    coo_to_blocks,
    coo_to_compressed,
    coo_to_dense,
    dense_to_blocks,
    dense_to_coo,
    nonzero,
)
from ..dispatch.bit_resolution import resolved
from ..tensor import Tensor, wrap
from .invariants import COMPRESSED, warn_of_beta
from .recording import is_coo, is_sparse, make, record


def layout_name(x: Any) -> str:
    """The name of a tensor's or array's layout in messages."""
    a = getattr(x, "_array", x)
    return LAYOUT_NAMES[a.layout] if isinstance(a, SparseArray) else "Strided"


# ----- arrays ------------------------------------------------------------------------------------


def coalesced(a: CooArray) -> CooArray:
    """The same array with sorted and distinct indices."""
    if a.coalesced:
        return a
    if a.nnz < 2:
        return CooArray(a.indices, a.values, a.shape, True)
    return CooArray(*sum_duplicates(a.indices, a.values, a.shape[: a.sparse_dim]), a.shape, True)


def _each_batch(a: CompressedArray, convert: Callable[[Any], Any]) -> list[Any]:
    count = int(np.prod(a.shape[: a.batch_dim]))
    parts = (x.reshape(count, *x.shape[a.batch_dim:]) for x in (a.compressed, a.plain, a.values))
    return [convert(matrix) for matrix in zip(*parts, strict=True)]


def to_dense_array(a: SparseArray) -> np.ndarray:
    """A dense array of a sparse one."""
    if isinstance(a, CooArray):
        return coo_to_dense(a.indices, a.values, a.shape, a.coalesced)
    assert isinstance(a, CompressedArray)
    block = a.block_shape if a.has_blocks else None
    shape = a.shape[a.batch_dim:]

    def convert(matrix: Any) -> np.ndarray:
        return coo_to_dense(*compressed_to_coo(matrix, a.by_row, block), shape, True)

    if not a.batch_dim:
        return convert((a.compressed, a.plain, a.values))
    parts = _each_batch(a, convert)
    return np.stack(parts).reshape(a.shape) if parts else np.zeros(a.shape, a.values.dtype)


def to_coo_array(a: SparseArray) -> CooArray:
    """A COO array of a sparse one; batches become sparse dimensions."""
    if isinstance(a, CooArray):
        return a
    assert isinstance(a, CompressedArray)
    block = a.block_shape if a.has_blocks else None
    sorted_ = a.layout is sparse_csr

    def convert(matrix: Any) -> Any:
        return compressed_to_coo(matrix, a.by_row, block, in_order=False)

    if not a.batch_dim:
        places, values = convert((a.compressed, a.plain, a.values))
        return CooArray(places, values, a.shape, sorted_)
    parts = _each_batch(a, convert)
    batch = np.indices(a.shape[: a.batch_dim]).reshape(a.batch_dim, -1)
    indices = [np.concatenate([np.repeat(batch[:, k: k + 1], found.shape[1], 1), found])
               for k, (found, _) in enumerate(parts)]
    return CooArray(np.concatenate(indices, 1), np.concatenate([v for _, v in parts]), a.shape, sorted_)


def to_compressed_array(a: Any, kind: layout_type, block: tuple[int, int] | None,
                        dense_dim: int = 0) -> CompressedArray:
    """A compressed array of a dense or sparse one."""
    by_row = kind in (sparse_csr, sparse_bsr)
    if isinstance(a, CompressedArray):
        index_dtype: Any = a.plain.dtype
        shape = a.shape[a.batch_dim:]
        own = a.block_shape if a.has_blocks else None

        def convert(matrix: Any) -> Any:
            places, values = compressed_to_coo(matrix, a.by_row, own)
            if block is None:
                return coo_to_compressed(places, values, shape, by_row, index_dtype)
            return coo_to_blocks(places, values, shape, by_row, block, index_dtype)

        if a.batch_dim:
            return _stacked(kind, _each_batch(a, convert), a.shape, a.batch_dim)
        return _of_components(kind, convert((a.compressed, a.plain, a.values)), a.shape)
    if isinstance(a, CooArray):
        a = coalesced(a)
        if block is None:
            return _of_components(kind, coo_to_compressed(a.indices, a.values, a.shape, by_row), a.shape)
        return _of_components(kind, coo_to_blocks(a.indices, a.values, a.shape, by_row, block), a.shape)
    batch_dim = a.ndim - 2 - dense_dim

    def compress(matrix: np.ndarray) -> Any:
        if block is not None:
            return dense_to_blocks(matrix, block, by_row)
        return coo_to_compressed(*dense_to_coo(matrix, 2), matrix.shape, by_row)

    if not batch_dim:
        return _of_components(kind, compress(a), a.shape)
    count = int(np.prod(a.shape[:batch_dim]))
    matrices = a.reshape(count, *a.shape[batch_dim:])
    if not count:
        raise RuntimeError(f"to_sparse_{kind.name.removeprefix('sparse_')}: Expected product of batch dimensions to be "
                           "non-zero.")
    return _stacked(kind, [compress(m) for m in matrices], a.shape, batch_dim)


def _of_components(kind: layout_type, components: Any, shape: tuple[int, ...]) -> CompressedArray:
    compressed, plain, values = components
    return CompressedArray(kind, compressed, plain, values, shape)


def _stacked(kind: layout_type, parts: list[Any], shape: tuple[int, ...], batch_dim: int) -> CompressedArray:
    if len({part[1].size for part in parts}) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")
    batch = shape[:batch_dim]
    stacked = [np.stack(x) for x in zip(*parts, strict=True)]
    return _of_components(kind, [x.reshape(*batch, *x.shape[1:]) for x in stacked], shape)


# ----- tensors -----------------------------------------------------------------------------------


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """A dense tensor of a sparse one."""
    if not is_sparse(self):
        return self if dtype is None else self.to(dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense" if is_coo(self) else
                           "dtype argument is not supported by sparse_csr_to_dense")
    a: Any = self._array
    out = wrap(to_dense_array(a))
    masked = masked_grad is None or masked_grad

    def rule(g: Tensor) -> tuple[Any]:
        if is_coo(self):
            return (g.sparse_mask(self.detach().coalesce()) if masked else g.to_sparse(a.sparse_dim),)
        if masked:
            return (g.sparse_mask(self.detach()),)
        return (g.to_sparse(layout=a.layout, blocksize=a.block_shape if a.has_blocks else None,
                            dense_dim=a.dense_dim),)

    return record(out, "ToDenseBackward0", (self,), rule, (self,))


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
              dense_dim: int | None = None) -> Tensor:
    """A sparse tensor of a dense one, or of one with another layout.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to_sparse.html

    Args:
        sparse_dim: the number of sparse dimensions of a COO tensor; default: all.
        layout: the result's layout; default: `torch.sparse_coo`.
        blocksize: (height, width), for layouts with blocks.
        dense_dim: the number of dense dimensions; default: none.

    Raises:
        RuntimeError: the arguments do not fit the layout.

    >>> import flambeau as torch
    >>> torch.tensor([[0., 2.], [0., 0.]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([2.]),
           size=(2, 2), nnz=1, layout=flambeau.sparse_coo)
    """
    if sparse_dim is not None:
        if not isinstance(sparse_dim, (int, np.integer)):
            raise TypeError(f"to_sparse(): argument 'sparse_dim' must be int, not {type(sparse_dim).__name__}")
        return _to_coo(self, int(sparse_dim), "ToSparseBackward0")
    kind = sparse_coo if layout is None else layout
    a: Any = self._array
    dense, same, source = not isinstance(a, SparseArray), kind is self.layout, layout_name(self)
    where = "to_sparse" if same else _to_sparse_from(source)
    if blocksize is not None:
        _check_block_size(where, blocksize)
    has_blocks = kind in (sparse_bsr, sparse_bsc)
    conversion = f"{where}: conversion from {source} to {'Strided' if kind is strided else LAYOUT_NAMES[kind]}"
    if has_blocks and blocksize is None and not same:
        raise RuntimeError(f"{conversion} without blocksize argument given is not supported")
    if blocksize is not None and not has_blocks:
        raise RuntimeError(f"{conversion} with blocksize argument given is not supported")
    if dense_dim is not None and not dense:
        raise RuntimeError(f"{conversion} with dense_dim argument given is not supported")
    if kind is strided or kind is sparse_coo:
        most = a.ndim if kind is sparse_coo else max(a.ndim - 2, 0)
        if dense_dim is not None and not 0 <= dense_dim <= most:
            raise RuntimeError(f"{where}: dense_dim argument must be in [0,{most}] range, but {dense_dim} is given")
        if dense_dim is not None and kind is sparse_coo and dense_dim == a.ndim > 0:
            raise RuntimeError(f"{where}: dense_dim argument must be !=self.dim() when self.dim()>0")
        if same:
            return self
        if kind is strided:
            return record(wrap(to_dense_array(a)), "ToSparseBackward1", (self,), _back(self), (self,))
        return _to_coo(self, None if dense_dim is None else a.ndim - dense_dim, "ToSparseBackward1")
    if same and blocksize is None:
        return self
    return _to_compressed(self, kind, "to_sparse", "ToSparseBackward1", blocksize, dense_dim)


def to_sparse_coo(self: Tensor) -> Tensor:
    """A tensor in coordinate format.

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse_coo().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    return to_sparse(self)


def _back(source: Tensor) -> Any:
    """The rule of a conversion: the gradient in the layout of the source."""
    a: Any = source._array
    if not isinstance(a, SparseArray):
        return lambda g: (to_dense(g),)
    if isinstance(a, CooArray):
        sparse_dim = a.sparse_dim
        return lambda g: (g if is_coo(g) else g.to_sparse(sparse_dim) if not is_sparse(g) else g.to_sparse(),)
    assert isinstance(a, CompressedArray)
    kind, block = a.layout, a.block_shape if a.has_blocks else None
    return lambda g: (g if is_sparse(g) and g.layout is kind else g.to_sparse(layout=kind, blocksize=block),)


def _check_recordable(self: Tensor, name: str) -> None:
    """Check that the conversion of a dense tensor has a derivative.

    Raises:
        RuntimeError: a complex tensor requires grad (PyTorch's text).
    """
    if self._requires_grad and self.dtype.is_complex and grad_mode.get():
        raise RuntimeError(f"_{name} does not support automatic differentiation for outputs with complex dtype.")


def _to_coo(self: Tensor, sparse_dim: int | None, node: str) -> Tensor:
    self = resolved(self)
    a: Any = self._array
    if isinstance(a, CooArray):
        if sparse_dim is not None and sparse_dim != a.sparse_dim:
            raise RuntimeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument "
                               "!=self.sparse_dim() is not supported")
        return self
    if isinstance(a, CompressedArray):
        if sparse_dim is not None and sparse_dim != 2:
            raise RuntimeError(f"sparse_compressed_to_sparse: conversion from {layout_name(a)} to Sparse with "
                               "sparse_dim argument !=2 is not supported")
        return record(make(to_coo_array(a)), node, (self,), _back(self))
    _check_recordable(self, "to_sparse")
    count = a.ndim if sparse_dim is None else sparse_dim
    if sparse_dim is not None:
        if sparse_dim == 0 and a.ndim > 0:
            raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
        if not 0 <= sparse_dim <= a.ndim:
            raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{a.ndim}] range, but {sparse_dim} "
                               "is given")
    return record(make(CooArray(*dense_to_coo(a, count), a.shape, True)), node, (self,), _back(self))


def _check_block_size(name: str, blocksize: Any) -> tuple[int, int]:
    block = tuple(int(n) for n in blocksize)
    if len(block) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(block)}")
    if block[0] <= 0 or block[1] <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got {list(block)}")
    return block


def _to_sparse_from(source: str) -> str:
    """The name in errors of `to_sparse(layout=)` of a tensor whose layout has a name."""
    return {"Strided": "dense_to_sparse", "Sparse": "sparse_coo_to_sparse"}.get(source, "sparse_compressed_to_sparse")


def _block_size(name: str, source: str, kind: layout_type, blocksize: Any, sizes: tuple[int, ...]) -> Any:
    """A checked block size; None for layouts without blocks."""
    target = LAYOUT_NAMES[kind]
    if name == "to_sparse":
        name = where = _to_sparse_from(source)
    else:
        origin = "dense" if source == "Strided" else "coo" if source == "Sparse" else "sparse_compressed"
        where = f"{origin}_to_{kind.name}"
    if kind not in (sparse_bsr, sparse_bsc):
        if blocksize is not None:
            raise RuntimeError(f"{name}: conversion from {source} to {target} with blocksize argument given is not "
                               "supported")
        return None
    if blocksize is None:
        raise RuntimeError(f"{name}: conversion from {source} to {target} without blocksize argument given is not "
                           "supported")
    block = _check_block_size(where, blocksize)
    if sizes[0] % block[0] or sizes[1] % block[1]:
        raise RuntimeError(f"{where}: tensor sparse size ({sizes[0]},{sizes[1]}) must be divisible by given blocksize "
                           f"({block[0]},{block[1]})")
    return block


def _to_compressed(self: Tensor, kind: layout_type, name: str, node: str, blocksize: Any = None,
                   dense_dim: int | None = None) -> Tensor:
    self = resolved(self)
    a: Any = self._array
    if isinstance(blocksize, int):
        blocksize = (blocksize, blocksize)
    source, target = layout_name(a), LAYOUT_NAMES[kind]
    if isinstance(a, SparseArray) and dense_dim is not None and a.layout is not kind and name != "to_sparse":
        raise RuntimeError(f"{name}: conversion from {source} to {target} with dense_dim argument given is not "
                           "supported")
    dense = 0
    if not isinstance(a, SparseArray):
        _check_recordable(self, name)
        dense = dense_dim or 0
        if a.ndim < 2 and not dense_dim:
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)" if not a.ndim else
                             f"select(): index 1 out of range for tensor of size [{a.ndim + 1}, 1] at dimension 1")
        if dense < 0 or dense > a.ndim - 2:
            where = _to_sparse_from(source) if name == "to_sparse" else name
            raise RuntimeError(f"{where}: dense_dim argument must be in [0,{a.ndim - 2}] range, but {dense} is given")
        sizes = a.shape[a.ndim - 2 - dense: a.ndim - dense]
    elif isinstance(a, CooArray):
        if a.sparse_dim != 2:
            raise RuntimeError(f"{name}: conversion from {source} to {target} for input tensors with sparse_dim()!=2 "
                               "is not supported")
        sizes = a.shape[:2]
    else:
        sizes = a.shape[a.batch_dim: a.batch_dim + 2]
        if a.layout is kind and (not a.has_blocks or blocksize is None or tuple(blocksize) == a.block_shape):
            return self
        if kind in (sparse_csr, sparse_csc) and a.has_blocks:
            raise RuntimeError(f"sparse_compressed_to_{kind.name}: expected SparseCsr or SparseCsc layout but got "
                               f"{source}")
    if isinstance(a, CompressedArray) and a.batch_dim and not a.has_blocks and kind in (sparse_bsr, sparse_bsc):
        raise RuntimeError(f"{name}: conversion from {source} to {target} for batched inputs is not supported")
    block = _block_size(name, source, kind, blocksize, sizes)
    warn_of_beta(kind)
    return record(make(to_compressed_array(a, kind, block, dense)), node, (self,), _back(self))


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """A tensor in compressed row format.

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return _to_compressed(self, sparse_csr, "to_sparse_csr", "ToSparseCsrBackward0", None, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """A tensor in compressed column format.

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse_csc().ccol_indices()
    tensor([0, 1, 2])
    """
    return _to_compressed(self, sparse_csc, "to_sparse_csc", "ToSparseCscBackward0", None, dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """A tensor in compressed row format of blocks.

    >>> import flambeau as torch
    >>> torch.eye(4).to_sparse_bsr((2, 2)).col_indices()
    tensor([0, 1])
    """
    return _to_compressed(self, sparse_bsr, "to_sparse_bsr", "ToSparseBsrBackward0", blocksize, dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """A tensor in compressed column format of blocks.

    >>> import flambeau as torch
    >>> torch.eye(4).to_sparse_bsc((2, 2)).row_indices()
    tensor([0, 1])
    """
    return _to_compressed(self, sparse_bsc, "to_sparse_bsc", "ToSparseBscBackward0", blocksize, dense_dim)


def in_layout(x: Tensor, like: SparseArray) -> Tensor:
    """A COO or dense tensor in the layout of an array."""
    if like.layout is sparse_coo:
        return x if is_coo(x) else to_sparse(x)
    assert isinstance(like, CompressedArray)
    return to_sparse(x, layout=like.layout, blocksize=like.block_shape if like.has_blocks else None)


__all__ = ["COMPRESSED", "coalesced", "dtypes", "in_layout", "layout_name", "nonzero", "to_compressed_array",
           "to_coo_array", "to_dense", "to_dense_array", "to_sparse", "to_sparse_bsc", "to_sparse_bsr", "to_sparse_coo",
           "to_sparse_csc", "to_sparse_csr"]
