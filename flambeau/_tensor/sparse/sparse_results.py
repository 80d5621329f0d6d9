"""Products of a sparse and a dense matrix that are sparse: `smm`, `sspaddmm` and `hspmm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.sparse_array import CooArray
from ...engine.tensor_interface import layer
from ..tensor import Tensor, wrap
from .constructors import empty_coo
from .conversion import coalesced, layout_name
from .products import times_dense
from .recording import is_coo, is_sparse, make, record


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """input @ mat of a sparse and a dense matrix, as a sparse tensor of all elements.

    >>> import flambeau as torch
    >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    result = empty_coo((input._array.shape[0], mat._array.shape[-1]), 2, 0, input.dtype)
    return sspaddmm(result, input, mat, beta=0)


def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Tensor:
    """alpha * mat1 @ mat2 of a sparse and a dense matrix, plus beta * input, as a sparse tensor.

    >>> import flambeau as torch
    >>> x = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(x, x, torch.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    if not is_sparse(input):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    if not is_coo(mat1):
        raise RuntimeError("sspaddmm: expected 'mat1' to have sparse layout, got 'mat1' with layout "
                           f"{layout_name(mat1)}")
    if is_sparse(mat2):
        raise RuntimeError("sspaddmm: expected 'mat2' to have strided layout, got 'mat2' with layout "
                           f"{layout_name(mat2)}")
    a: Any = coalesced(mat1._array)  # type: ignore[arg-type]
    if a.sparse_dim != 2 or a.dense_dim:
        raise RuntimeError(f"sspaddmm: Argument #2: matrices expected, got {a.ndim}D tensor")
    if mat2._array.ndim != 2:
        raise RuntimeError(f"sspaddmm: Argument #3: matrices expected, got {mat2._array.ndim}D tensor")
    if a.shape[1] != mat2._array.shape[0]:
        raise RuntimeError(f"sspaddmm: Argument #3: Expected dim 0 size {a.shape[1]}, got {mat2._array.shape[0]}")
    shape = (a.shape[0], mat2._array.shape[1])
    if tuple(input._array.shape) != shape:
        raise RuntimeError(f"sspaddmm: Argument #1: Expected dim 0 size {shape[0]}, got {input._array.shape[0]}")
    rows = np.unique(a.indices[0])
    dense = times_dense(a, mat2._array)[rows]
    values = layer.functions.mul(wrap(dense.reshape(-1)), alpha)._array if alpha != 1 else dense.reshape(-1)
    indices = np.stack([np.repeat(rows, shape[1]), np.tile(np.arange(shape[1]), rows.size)])
    own: Any = input._array
    if beta != 0:
        kept = own.values if beta == 1 else layer.functions.mul(wrap(own.values), beta)._array
        indices = np.concatenate([own.indices, indices], 1)
        values = np.concatenate([kept, values])
    result = make(CooArray(indices.astype(np.int64), values, shape, False))
    result = record(result, "NotImplemented", (input, mat1, mat2), None, (), "sspaddmm")
    if out is not None:
        out._array = result._array
        return out
    return result


def hspmm(mat1: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """mat1 @ mat2 of a sparse and a dense matrix, as a hybrid sparse tensor of rows.

    >>> import flambeau as torch
    >>> torch.hspmm(torch.eye(2).to_sparse(), torch.ones(2, 1)).values()
    tensor([[1.],
            [1.]])
    """
    if not is_coo(mat1):
        raise RuntimeError(f"hspmm: expected 'mat1' to have sparse layout, got {layout_name(mat1)}")
    a: Any = coalesced(mat1._array)  # type: ignore[arg-type]
    if a.sparse_dim != 2 or a.dense_dim:
        raise RuntimeError(f"hspmm: Argument #2: matrices expected, got {a.ndim}D tensor")
    if mat2._array.ndim != 2:
        raise RuntimeError(f"hspmm: Argument #3: matrices expected, got {mat2._array.ndim}D tensor")
    if a.shape[1] != mat2._array.shape[0]:
        raise RuntimeError(f"hspmm: Argument #3: Expected dim 0 size {a.shape[1]}, got {mat2._array.shape[0]}")
    rows = np.unique(a.indices[0])
    values = times_dense(a, mat2._array)[rows]
    result = make(CooArray(rows[None].astype(np.int64), values, (a.shape[0], mat2._array.shape[1]), True))
    result = record(result, "NotImplemented", (mat1, mat2), None, (), "hspmm")
    if out is not None:
        out._array = result._array
        return out
    return result


__all__ = ["hspmm", "smm", "sspaddmm"]
