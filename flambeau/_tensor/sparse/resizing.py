"""Resizing of sparse tensors in place, and copies between sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import CompressedArray, CooArray, SparseArray, format_name, not_implemented
from ...devices import strided
from ..tensor import Tensor
from .conversion import layout_name
from .recording import is_coo, is_sparse

_OPTIONS = """You could try the following options:
1. If you need an empty sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`.
2. If you need to resize this tensor, you have the following options:
    1. For both sparse and dense dimensions, keep the number of them constant and the size of them non-shrinking, and \
then try the same call again.
    2. Or, create a new sparse tensor with the correct indices and values from this sparse tensor."""


def _array_of(self: Tensor, name: str) -> CooArray:
    if not is_coo(self):
        raise not_implemented(name, self.layout if is_sparse(self) else strided)
    return self._array  # type: ignore[return-value]


def sparse_resize_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Resize a COO tensor, keeping its elements."""
    a = _array_of(self, "sparse_resize_")
    size = tuple(int(n) for n in size)
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
                           f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}")
    if a.nnz:
        if sparse_dim != a.sparse_dim:
            raise RuntimeError(f"changing the number of sparse dimensions (from {a.sparse_dim} to {sparse_dim}) on a "
                               f"non-empty sparse tensor is not supported.\n{_OPTIONS}")
        if dense_dim != a.dense_dim:
            raise RuntimeError(f"changing the number of dense dimensions (from {a.dense_dim} to {dense_dim}) on a "
                               f"non-empty sparse tensor is not supported.\n{_OPTIONS}")
        for kind, old, new in (("sparse", a.shape[:sparse_dim], size[:sparse_dim]),
                               ("dense", a.shape[sparse_dim:], size[sparse_dim:])):
            if any(m < n for m, n in zip(new, old, strict=True)):
                raise RuntimeError(f"shrinking the size of {kind} dimensions (from {list(old)} to {list(new)}) on a "
                                   f"non-empty sparse tensor is not supported.\n{_OPTIONS}")
    if sparse_dim == a.sparse_dim and size[sparse_dim:] == a.shape[a.sparse_dim:]:
        indices, values = a.indices, a.values
    else:
        indices = a.indices if sparse_dim == a.sparse_dim else np.zeros((sparse_dim, 0), np.int64)
        values = np.zeros((a.nnz if sparse_dim == a.sparse_dim else 0, *size[sparse_dim:]), a.values.dtype)
        if a.nnz:  # as `resize_` of the values: the same elements in memory order
            values.reshape(-1)[: a.values.size] = a.values.reshape(-1)
    self._array = CooArray(indices, values, size, a.coalesced)  # type: ignore[assignment]
    self._bump_version()
    return self


def sparse_resize_and_clear_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Resize a COO tensor, without elements."""
    a = _array_of(self, "sparse_resize_and_clear_")
    size = tuple(int(n) for n in size)
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
                           f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}")
    self._array = CooArray(np.zeros((sparse_dim, 0), np.int64),  # type: ignore[assignment]
                           np.zeros((0, *size[sparse_dim:]), a.values.dtype), size, True)
    self._bump_version()
    return self


def resize_as_sparse_(self: Tensor, the_template: Tensor) -> Tensor:
    """Resize a COO tensor like another one.

    >>> import flambeau as torch
    >>> torch.resize_as_sparse_(torch.eye(2).to_sparse(), torch.eye(3).to_sparse()).shape
    flambeau.Size([3, 3])
    """
    other: Any = the_template._array
    if isinstance(self._array, CompressedArray):
        if not isinstance(other, CompressedArray) or other.layout is not self.layout:
            raise RuntimeError("resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: "
                               f"self ({layout_name(self)}) and source ({layout_name(the_template)})")
        copied = other.copy()
        self._array = copied.with_values(
            np.zeros(other.values.shape, self._array.values.dtype))
        self._bump_version()
        return self
    a = _array_of(self, "resize_as_sparse_")
    b = _array_of(the_template, "resize_as_sparse_")
    if (a.shape, a.sparse_dim, a.dense_dim) != (b.shape, b.sparse_dim, b.dense_dim):
        sparse_resize_(self, b.shape, b.sparse_dim, b.dense_dim)
    return self


def resize_compressed_(self: Tensor, size: tuple[int, ...]) -> Tensor:
    """`resize_` of a compressed tensor: elements keep their order in memory, what exceeds the matrix is dropped.

    Raises:
        RuntimeError: fewer than two dimensions, or fewer places along the dimension that is not compressed.
        NotImplementedError: blocks or dense dimensions.
    """
    a: Any = self._array
    if not isinstance(a, CompressedArray) or a.has_blocks or a.dense_dim:
        raise not_implemented("resize_", self.layout)
    if len(size) < 2:
        raise RuntimeError(f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(size)}")
    along, across = (-2, -1) if a.by_row else (-1, -2)
    if size[across] < a.shape[across]:
        kind = "columns" if a.by_row else "rows"
        raise RuntimeError(f"torch.resize_: Resizing {kind} of sparse {format_name(a)} tensors to a smaller value is "
                           f"not supported. The original number of {kind} is {a.shape[across]} while the requested "
                           f"new number of {kind} is {size[across]}.")
    batch, count, before = size[:-2], size[along], a.shape[along]
    nnz = min(a.nnz, size[-2] * size[-1])
    starts = _in_memory(a.compressed, (*batch, count + 1))
    if count != before:
        starts[..., min(before + 1, count):] = nnz
    self._array = CompressedArray(a.layout, starts, _in_memory(a.plain, (*batch, nnz)),  # type: ignore[assignment]
                                  _in_memory(a.values, (*batch, nnz)), size)
    self._bump_version()
    return self


def _in_memory(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array of another shape with the elements of `array` in memory order, and zeros behind them."""
    out = np.zeros(shape, array.dtype)
    n = min(out.size, array.size)
    out.reshape(-1)[:n] = array.reshape(-1)[:n]
    return out


def _check_compressed_copy(self: Tensor, src: Tensor) -> None:
    """Check that a compressed tensor may be copied to another one.

    Raises:
        RuntimeError: layouts, shapes, blocks or numbers of elements differ (PyTorch's texts).
    """
    a: Any = self._array
    b: Any = src._array
    if not isinstance(a, CompressedArray):
        raise RuntimeError("copy_sparse_compressed_ expected sparse compressed tensor layout but got "
                           f"{layout_name(a)}")
    if not isinstance(b, CompressedArray) or a.layout is not b.layout:
        raise RuntimeError("torch.copy_: copy of sparse compressed tensors having different layouts is not supported. "
                           f"self layout is {layout_name(a)} and src layout is {layout_name(b)}")
    if a.plain.shape[-1] != b.plain.shape[-1]:
        raise RuntimeError("torch.copy_: only sparse compressed tensors with the same number of specified elements are "
                           "supported.")
    along = [x.batch_dim + (0 if x.by_row else 1) for x in (a, b)]
    sizes = [x.shape[d] for x, d in zip((a, b), along, strict=True)]
    if sizes[0] != sizes[1]:
        where = (f"dimension {along[0]}" if along[0] == along[1] else
                 f"dimensions {along[0]} and {along[1]}, respectively,")
        raise RuntimeError(f"torch.copy_: expected shapes of self and src to match along {where} for "
                           f"{layout_name(a)} layout but the corresponding dimensions of self and src are {sizes[0]} "
                           f"and {sizes[1]}, respectively.")
    if a.block_shape != b.block_shape:
        raise RuntimeError("torch.copy_: copy of sparse compressed tensors having different block sizes is not "
                           f"supported. self and src block sizes are {list(a.block_shape)} and "
                           f"{list(b.block_shape)}, respectively.")


def _legacy(x: Tensor) -> str:
    name = x.dtype.legacy
    return f"torch.sparse.{name}" if is_coo(x) else f"torch.{name}"


def copy_sparse_(self: Tensor, src: Tensor) -> Tensor:
    """`copy_` where a tensor is sparse.

    Raises:
        RuntimeError: only one of them is sparse (PyTorch's text).
    """
    from .dispatch import assign
    from .recording import make, record

    a: Any = self._array
    b: Any = src._array
    if isinstance(a, CompressedArray) or isinstance(b, CompressedArray):
        _check_compressed_copy(self, src)
    elif not (isinstance(a, CooArray) and isinstance(b, CooArray)):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                           f"{_legacy(self)} and src type = {_legacy(src)}")
    if self is src:
        return self
    if a.shape != b.shape:
        raise RuntimeError(f"copy_(): sizes of self {list(a.shape)} and src {list(b.shape)} differ; sparse tensors are "
                           "not broadcast")
    from ...engine.grad_mode import grad_mode

    tracked = grad_mode.get() and (self._requires_grad or src._requires_grad)
    copied: SparseArray = b.copy()
    to = a.values.dtype
    out = make(copied.with_values(dtypes.cast(copied.values, to)))
    dtype = src.dtype
    record(out, "CopyBackwards", (None, src), lambda g: (None, g.to(dtype)))
    return assign(self, out, tracked)


__all__ = ["copy_sparse_", "resize_as_sparse_", "resize_compressed_", "sparse_resize_", "sparse_resize_and_clear_"]
