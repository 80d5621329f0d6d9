"""Diagonals of matrices, and the indices of triangles."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ... import dtypes
from ...ops.declare import REGISTRY
from ..argument_errors.type_names import type_name
from ..dispatch.out_tensors import check_out, write_out
from ..dispatch.public_functions import public_function
from ..dispatch.write_checks import check_overlap
from ..tensor import Tensor
from .reshaping import view

__all__ = ["diag", "diagflat", "tril_indices", "triu_indices"]

def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor:
    """A matrix with the given diagonal, for a vector; the diagonal, for a matrix.

    >>> import flambeau as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    n = input._array.ndim
    if n == 2:
        return public_function(REGISTRY["diagonal_copy"])(input, offset=diagonal, out=out)
    if n != 1:
        raise RuntimeError(f"{'diag(): ' if out is None else ''}Supports 1D or 2D tensors. Got {n}D")
    embed = REGISTRY["diag_embed"]
    result = public_function(embed)(input, offset=diagonal)
    if out is None:
        return result
    if not isinstance(out, Tensor):  # the function `diag_embed` takes none
        raise TypeError(f"diag(): argument 'out' must be Tensor, not {type_name(out)}")
    if not dtypes.can_cast(input.dtype, out.dtype):
        raise RuntimeError(f"diag: result type {input.dtype.scalar_name} can't be cast to the desired out= type "
                           f"{out.dtype.scalar_name}")
    check_out(embed, (input,), (out,))
    check_overlap(out._array, disjoint=False)
    return write_out(embed, result, out)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix whose diagonal consists of all elements of the input.

    >>> import flambeau as torch
    >>> torch.diagflat(torch.tensor([[1, 2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag(view(input.contiguous(), -1), offset)


def _triangle(upper: bool) -> Any:
    name = "triu_indices" if upper else "tril_indices"

    def call(row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None, layout: Any = None,
             pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
        row, col, offset = index(row), index(col), index(offset)
        from ..creation.factory_arguments import refuse_pinned, refuse_sparse, wrap_new

        if layout is not None:
            refuse_sparse(layout, name)
        if row < 0 or col < 0:
            which, n = ("row", row) if row < 0 else ("col", col)
            raise RuntimeError(f"{which} must be non-negative, got{n}")
        dtype = dtypes.int64 if dtype is None else dtypes.of_argument(dtype, name)
        if dtype not in (dtypes.int32, dtypes.int64):
            raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.scalar_name}'")
        if pin_memory:
            refuse_pinned(device, layout)
        found = np.triu_indices(row, offset, col) if upper else np.tril_indices(row, offset, col)
        return wrap_new(np.stack(found).astype(dtype.numpy), device, requires_grad)

    call.__name__ = call.__qualname__ = name
    call.__code__ = call.__code__.replace(co_name=name, co_qualname=name)  # contexts of devices look for it
    call.__doc__ = f"""The row and column indices of the {'upper' if upper else 'lower'} triangle of a matrix, (2, n).

    Args:
        row, col: the shape of the matrix.
        offset: the diagonal that bounds the triangle: 0 the main one, positive above it.

    Raises:
        RuntimeError: `row` or `col` is negative.

    >>> import flambeau as torch
    >>> torch.{name}(2, 2)
    {"tensor([[0, 0, 1]," if upper else "tensor([[0, 1, 1],"}
            {"[0, 1, 1]])" if upper else "[0, 0, 1]])"}
    """
    return call


tril_indices, triu_indices = _triangle(False), _triangle(True)

METHODS: dict[str, Any] = {"diag": diag, "diagflat": diagflat}
