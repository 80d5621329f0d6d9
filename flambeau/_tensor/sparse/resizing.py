"""Resizing of COO tensors in place, and copies between sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import CompressedArray, CooArray, SparseArray, not_implemented
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
    if isinstance(a, CompressedArray) and isinstance(b, CompressedArray):
        if a.layout is not b.layout:
            raise RuntimeError("torch.copy_: copy of sparse compressed tensors having different layouts is not "
                               f"supported. self layout is {layout_name(a)} and src layout is {layout_name(b)}")
        if a.values.shape != b.values.shape:
            raise RuntimeError("torch.copy_: only sparse compressed tensors with the same number of specified elements "
                               "are supported.")
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


__all__ = ["copy_sparse_", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_"]
