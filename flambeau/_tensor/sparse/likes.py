"""Tensors like a sparse one, and the pickled form of sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.sparse_array import LAYOUT_NAMES, CompressedArray, CooArray, SparseArray, not_implemented
from ...devices import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..creation.constants import empty as empty_dense
from ..creation.constants import full
from ..tensor import Tensor, wrap
from .constructors import compressed, coo, empty, empty_coo, sparse_coo_tensor
from .conversion import layout_name
from .invariants import warn_of_beta
from .recording import make


def like(input: Tensor, fill: Any, dtype: Any, layout: Any, requires_grad: bool) -> Tensor:
    """A tensor of the shape of `input`, where that or the result is sparse.

    Args:
        fill: the elements' value; None: uninitialised.
        layout: of the result; default: that of `input`.
    """
    a: Any = input._array
    sparse = isinstance(a, SparseArray)
    kind = layout or (a.layout if sparse else strided)
    d = dtype or input.dtype
    if kind is strided:
        if isinstance(a, CompressedArray):
            raise RuntimeError("empty_like with different sparse layout is not supported (self is "
                               f"{layout_name(a)} but you requested Strided)")
        if fill is None:
            return empty_dense(tuple(a.shape), dtype=d, requires_grad=requires_grad)
        return full(tuple(a.shape), fill, dtype=d, requires_grad=requires_grad)
    if fill and not (isinstance(a, CompressedArray) and kind is a.layout):
        raise not_implemented("fill_.Scalar", kind)
    if fill is None and not sparse:
        raise not_implemented("empty_strided", kind)
    if fill is None and isinstance(a, CooArray) and kind in (sparse_bsr, sparse_bsc):
        raise RuntimeError("empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
                           f"{LAYOUT_NAMES[kind]}")
    if isinstance(a, CompressedArray) and fill != 0:
        if kind is not a.layout:
            raise RuntimeError("empty_like with different sparse layout is not supported (self is "
                               f"{layout_name(a)} but you requested {LAYOUT_NAMES[kind]})")
        values = full(a.values.shape, fill or 0, dtype=d)._array
        out = make(a.copy().with_values(values))
    elif kind is sparse_coo:
        dense = a.dense_dim if sparse else 0
        out = empty_coo(tuple(a.shape), a.ndim - dense, dense, d)
    else:
        out = _compressed_without_elements(a, kind, d)
    if requires_grad:
        out.requires_grad = True
    return out


def _compressed_without_elements(a: Any, kind: Any, d: Any) -> Tensor:
    """A compressed tensor of the shape, dense dimensions and block size of an array of any layout."""
    is_compressed = isinstance(a, CompressedArray)
    dense_dim = a.dense_dim if isinstance(a, SparseArray) else 0
    block = a.block_shape if is_compressed and a.has_blocks else ()
    index = a.plain.dtype if is_compressed else np.dtype(np.int64)
    return compressed_of_dims(0, dense_dim, tuple(a.shape), block, index, d, kind)


def compressed_of_dims(nnz: int, dense_dim: int, size: tuple[int, ...], block: Sequence[int], index: np.dtype, d: Any,
                       kind: Any) -> Tensor:
    """A compressed tensor of a shape with room for `nnz` elements or blocks in each batch, all of it zero.

    Raises:
        RuntimeError: numbers do not fit one another or the layout (PyTorch's texts).
    """
    prefix = "sparse_compressed_tensor_with_dims: "
    if index not in (np.int32, np.int64):
        raise RuntimeError(f"indices dtype must be Int or Long, but got {dtypes.of(index).scalar_name}")
    if (batch_dim := len(size) - dense_dim - 2) < 0:
        raise RuntimeError(f"{prefix}dimensionality must be at least dense_dim(={dense_dim}) + sparse_dim(=2), but got "
                           f"{len(size)}")
    if nnz < 0:
        raise RuntimeError(f"{prefix}nnz must be non-negative, got {nnz}")
    if kind in (sparse_bsr, sparse_bsc) and len(block) != 2:
        raise RuntimeError(f"{prefix}blocksize needs to be a tuple of size 2, but got {len(block)}")
    if kind in (sparse_csr, sparse_csc) and block:
        raise RuntimeError(f"{prefix}blocksize cannot be specified for non-block layout {LAYOUT_NAMES[kind]}")
    for k, each in enumerate(block):
        if each <= 0 or size[batch_dim + k] % each:
            raise RuntimeError(f"{prefix}dimension {batch_dim + k} must be multiple of blocksize[{k}](={each}) but got "
                               f"{size[batch_dim + k]}")
    warn_of_beta(kind)
    along = 0 if kind in (sparse_csr, sparse_bsr) else 1
    count = size[batch_dim + along] // (block[along] if block else 1)
    batch = size[:batch_dim]
    return make(CompressedArray(kind, np.zeros((*batch, count + 1), index), np.zeros((*batch, nnz), index),
                                np.zeros((*batch, nnz, *block, *size[batch_dim + 2:]), d.numpy), size))


_NEW_SIGNATURES = ("(*, torch.device device = None)", "(Tensor indices, Tensor values, *, torch.device device = None)",
                   "(Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)",
                   "(tuple of ints size, *, torch.device device = None)")


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """The legacy constructor of a sparse tensor, of this tensor's dtype."""
    if device is not None and (kind := devices.device(device).type) != "cpu":
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {kind} was passed")
    if not args:
        return empty_coo((0,), 1, 0, self.dtype)
    if isinstance(args[0], Tensor) and len(args) in (2, 3) and isinstance(args[1], Tensor):
        indices, values = args[0].to(dtypes.int64), args[1].to(self.dtype)
        if len(args) == 3:
            return coo(indices, values, tuple(map(int, args[2])))
        return sparse_coo_tensor(indices, values, check_invariants=False)
    if isinstance(args[0], list):
        raise TypeError("SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or "
                        "construct a strided tensor and convert it to sparse via to_sparse.")
    size = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    if not all(isinstance(n, int) for n in size):
        kind = "Tensor" if isinstance(args[0], Tensor) else f"{type(args[0]).__module__}.{type(args[0]).__qualname__}"
        raise TypeError(f"new() received an invalid combination of arguments - got ({kind}), but expected one of:\n"
                        + "".join(f" * {text}\n" for text in _NEW_SIGNATURES))
    return empty_coo(tuple(map(int, size)), len(size), 0, self.dtype)


def clear(out: Tensor, size: tuple[int, ...]) -> Tensor:
    """Resize a sparse `out=` tensor to a shape, without elements."""
    made = empty(out.layout, tuple(size), out.dtype)
    out._array = made._array
    out._bump_version()
    return out


def getitem(self: Tensor, key: Any) -> Any:
    """`self[key]` of a sparse tensor: ints select, None inserts a dimension."""
    keys = key if isinstance(key, tuple) else (key,)
    a: Any = self._array
    result: Any = self
    if isinstance(a, CompressedArray) and a.has_blocks and len(keys) > 1:
        result = self.to_sparse_coo()  # an element may be selected, a row may not
    dim = 0
    for position, obj in enumerate(keys):
        kind = obj.__class__
        if kind is int or (isinstance(obj, np.integer)):
            size = result._array.shape[dim] if dim < result._array.ndim else None
            if size is None:
                raise IndexError(f"too many indices for tensor of dimension {a.ndim}")
            if not -size <= obj < size:
                raise IndexError(f"index {int(obj)} is out of bounds for dimension {position} with size {size}")
            result = result.select(dim, int(obj))
        elif obj is None:
            result = result.unsqueeze(dim)
            dim += 1
        elif obj is Ellipsis:
            rest = sum(1 for each in keys[position + 1:] if each is not None)
            dim = result._array.ndim - rest
        elif kind is slice and obj == slice(None):
            dim += 1
        elif kind is slice:
            raise not_implemented("as_strided", a.layout)
        else:
            raise not_implemented("index.Tensor", a.layout)
    return result


# ----- pickling ----------------------------------------------------------------------------------


def rebuild_arguments(x: Tensor) -> tuple[Any, ...]:
    """The arguments of `rebuild` for a sparse tensor: its layout, and components."""
    a: Any = x._array
    from ...shapes import as_size

    if isinstance(a, CooArray):
        return a.layout, (wrap(a.indices), wrap(a.values), as_size(a.shape), a.coalesced)
    return a.layout, (wrap(a.compressed), wrap(a.plain), wrap(a.values), as_size(a.shape))


def rebuild(layout: Any, data: tuple[Any, ...]) -> Tensor:
    """A sparse tensor of its components."""
    if layout is sparse_coo:
        indices, values, size, *coalesced = data
        return coo(indices, values, tuple(size), coalesced=bool(coalesced and coalesced[0]))
    first, second, values, size = data
    return compressed(layout, first, second, values, tuple(size))


__all__ = ["clear", "getitem", "like", "new", "rebuild", "rebuild_arguments"]
