"""Masks and masked reductions of sparse COO and CSR tensors: elements that are not specified are masked out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import devices, dtypes
from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.sparse.constructors import sparse_coo_tensor, sparse_csr_tensor
from .._tensor.sparse.names import _sparse_broadcast_to
from .identities import _reduction_identity

LAYOUTS = (devices.strided, devices.sparse_coo, devices.sparse_csr)


def canonical_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The mask in the input's shape and layout, coalesced; not yet converted to bool.

    Raises:
        ValueError: the input has another layout than COO, CSR and strided.
    """
    if input.layout not in LAYOUTS:
        raise ValueError(f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {input.layout}")
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
                             "input)")
        if mask.layout == devices.strided:
            mask = fn.broadcast_to(mask.clone(), input.shape).to(dtypes.bool_)
        else:
            compressed = mask.layout == devices.sparse_csr
            mask = _sparse_broadcast_to(mask.to_sparse() if compressed else mask, input.shape)
            mask = mask.to_sparse_csr() if compressed else mask
    if mask.layout != input.layout:
        if input.layout == devices.strided:
            mask = mask.to_dense()
        elif input.layout == devices.sparse_csr:
            mask = mask.to_sparse_csr()
        else:
            mask = mask.to_sparse(input.sparse_dim()) if mask.layout == devices.strided else mask.to_sparse()
    return mask.coalesce() if mask.layout == devices.sparse_coo else mask


def where_sparse(mask: Tensor, input: Tensor, fill_value: Any) -> Tensor:
    """The input's elements that the mask selects, as a sparse tensor; those that the input lacks are 0.

    Where the input has dense dimensions, `fill_value` takes the place of their masked-out elements.
    """
    if input.layout == devices.sparse_csr:
        return where_sparse(mask.to_sparse(), input.to_sparse(), fill_value).to_sparse_csr()
    input, mask = input.coalesce(), mask.coalesce()
    chosen = mask.values()
    for _ in range(mask.dense_dim()):
        chosen = chosen.any(-1)
    indices, masks = mask.indices()[:, chosen], mask.values()[chosen]
    places, wanted = (_linear(x, input.shape[:input.sparse_dim()]) for x in (input.indices(), indices))
    values = fn.zeros(wanted.shape + input.shape[input.sparse_dim():], dtype=input.dtype)
    if places.numel():
        at = fn.searchsorted(places, wanted).clamp(max=places.numel() - 1)
        found = places[at] == wanted
        masks = masks[found]
        specified = input.values()[at[found]]
        values[found] = fn.where(masks, specified, fill_value) if mask.dense_dim() else specified
    return sparse_coo_tensor(indices, values, input.shape, is_coalesced=True)


def _linear(indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """One number for each column of indices, in the order of the columns."""
    result = fn.zeros(indices.shape[1:], dtype=dtypes.int64)
    for row, n in zip(indices, shape, strict=True):
        result = result * n + row
    return result


def reduce_sparse(op: Callable[..., Tensor], name: str, input: Tensor, dims: tuple[int, ...], keepdim: bool,
                  dtype: Any) -> Tensor:
    """A reduction of the specified elements along `dims`, in the input's layout.

    Args:
        op: the reduction of strided tensors.
        dtype: of the result.
    """
    reduce = _reduce_compressed if input.layout == devices.sparse_csr else _reduce_coordinates
    return reduce(op, name, input, dims, keepdim, input.dtype if dtype is None else dtype)


def _reduce_coordinates(op: Callable[..., Tensor], name: str, input: Tensor, dims: tuple[int, ...], keepdim: bool,
                        dtype: Any) -> Any:
    sparse = input.sparse_dim()
    indices, values = input._indices(), input._values().to(dtype)
    dense = [d - sparse + 1 for d in dims if sparse <= d < input.ndim]  # a 0-d tensor has no dimension 0
    if dense:
        if name != "sum":
            return NotImplemented  # as PyTorch's answer: masked-out elements of dense dimensions are 0
        values = op(values, dim=dense, keepdim=keepdim)
    reduced = [d for d in dims if d < sparse]
    if len(reduced) == sparse:
        whole = op(values, dim=0) if len(values) or name in ("sum", "prod") else _identity_like(name, values)
        return (whole.reshape((1,) * sparse + whole.shape) if keepdim else whole).to(dtype).to_sparse()
    if keepdim:
        indices = indices.clone()
        indices[reduced] = 0
        shape = tuple(1 if d in dims else n for d, n in enumerate(input.shape))
    else:
        indices = indices[[d for d in range(sparse) if d not in reduced]]
        shape = tuple(n for d, n in enumerate(input.shape) if d not in dims)
    if indices.numel():
        indices, group = fn.unique(indices, return_inverse=True, dim=1)
        values = _reduce_groups(name, values, group, indices.shape[1])
    return sparse_coo_tensor(indices, values, shape, dtype=dtype)


def _identity_like(name: str, values: Tensor) -> Tensor:
    identity = _reduction_identity(name, values)
    assert identity is not None
    return identity


def _reduce_groups(name: str, values: Tensor, group: Tensor, number: int) -> Tensor:
    """The values of each group reduced; half precision is computed in float32."""
    narrow = values.dtype in (dtypes.bfloat16, dtypes.float16)
    computed = values.to(dtypes.float32) if narrow else values
    places = group.reshape((-1,) + (1,) * (values.ndim - 1)).expand(values.shape)
    result = computed.new_empty((number, *values.shape[1:])).scatter_reduce(
        0, places, computed, name, include_self=False)
    return result.to(values.dtype)


def _reduce_compressed(op: Callable[..., Tensor], name: str, input: Tensor, dims: tuple[int, ...], keepdim: bool,
                       dtype: Any) -> Tensor:
    if not keepdim:
        message = "reduction operations on CSR tensors with keepdim=False is unsupported"
        raise RuntimeError(message) if name in ("sum", "prod") else AssertionError(message)
    rows, columns, values = input.crow_indices(), input.col_indices(), input.values().to(dtype)
    if len(dims) == 2:
        whole = op(values).reshape(1) if len(values) else values
        return sparse_csr_tensor([0, len(whole)], columns.new_zeros(len(whole)), whole,
                                 (1, 1 if name in ("sum", "prod") else len(whole)), dtype=dtype)
    if dims[0] == 0:
        columns, group = fn.unique(columns, return_inverse=True)
        return sparse_csr_tensor([0, len(columns)], columns, _reduce_groups(name, values, group, len(columns)),
                                 (1, input.shape[1]), dtype=dtype)
    lengths = fn.diff(rows)
    group = fn.cumsum(lengths != 0, 0)  # rows without elements get none
    number = int(group[-1]) if len(group) else 0
    group = fn.cat((rows.new_zeros(1), group))
    members = fn.repeat_interleave(group[1:] - 1, lengths)
    return sparse_csr_tensor(group, columns.new_zeros(number), _reduce_groups(name, values, members, number),
                             (input.shape[0], 1), dtype=dtype)
