"""Tensors like a sparse one, and the pickled form of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.sparse_array import LAYOUT_NAMES, CompressedArray, CooArray, SparseArray, not_implemented
from ...devices import sparse_coo, strided
from ..creation.constants import empty as empty_dense
from ..creation.constants import full
from ..tensor import Tensor, wrap
from .constructors import compressed, coo, empty, empty_coo, sparse_coo_tensor
from .conversion import layout_name
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
    if fill:
        raise not_implemented("fill_.Scalar", kind)
    if fill is None and not sparse:
        raise not_implemented("empty_strided", kind)
    if isinstance(a, CompressedArray) and fill is None:
        if kind is not a.layout:
            raise RuntimeError("empty_like with different sparse layout is not supported (self is "
                               f"{layout_name(a)} but you requested {LAYOUT_NAMES[kind]})")
        out = make(a.copy().with_values(np.zeros(a.values.shape, d.numpy)))
    elif kind is sparse_coo and isinstance(a, CooArray):
        out = empty_coo(a.shape, a.sparse_dim, a.dense_dim, d)
    elif isinstance(a, CooArray) and a.dense_dim:
        raise RuntimeError(f"sparse_compressed_tensor_with_dims: dimensionality must be at least dense_dim(="
                           f"{a.dense_dim}) + sparse_dim(=2), but got {a.ndim}")
    elif isinstance(a, CompressedArray) and a.layout is kind:
        out = make(CompressedArray(kind, np.zeros_like(a.compressed), a.plain[..., :0],
                                   np.zeros((*a.values.shape[: a.batch_dim], 0,
                                             *a.values.shape[a.batch_dim + 1:]), d.numpy), a.shape))
    else:
        out = empty(kind, tuple(a.shape), d, name="zeros")
    if requires_grad:
        out.requires_grad = True
    return out


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
