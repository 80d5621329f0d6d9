"""`spdiags`, a sparse matrix of diagonals, and `spsolve`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ... import dtypes
from ...backends.sparse_array import LAYOUT_NAMES, CooArray
from ...devices import sparse_coo, sparse_csc, sparse_csr, strided
from ..tensor import Tensor
from .recording import make


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix with the rows of `diagonals` on its diagonals.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.spdiags.html

    Args:
        diagonals: (k, n), one row for each diagonal.
        offsets: (k,), int64; positive ones are above the main diagonal.
        shape: of the result.
        layout: COO (the default), CSR or CSC.

    Raises:
        RuntimeError: the shapes do not fit, or offsets repeat.

    >>> import flambeau as torch
    >>> torch.sparse.spdiags(torch.tensor([[1, 2, 3]]), torch.tensor([1]), (3, 3)).to_dense()
    tensor([[0, 2, 0],
            [0, 0, 3],
            [0, 0, 0]])
    """
    d, o = diagonals._array, offsets._array
    if d.ndim == 1:
        d = d[None]
    if d.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if o.ndim == 0:
        o = o[None]
    if o.ndim != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if d.shape[0] != o.shape[0]:
        raise RuntimeError(f"Number of diagonals ({d.shape[0]}) does not match the number of offsets ({o.shape[0]})")
    if layout is not None and layout not in (sparse_coo, sparse_csr, sparse_csc):
        text = "Strided" if layout is strided else LAYOUT_NAMES[layout]
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {text}")
    if offsets.dtype is not dtypes.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype.scalar_name}")
    if np.unique(o).size != o.size:
        raise RuntimeError("Offset tensor contains duplicate values")
    rows, columns = (int(n) for n in shape)
    indices, values = [], []
    for row, offset in zip(list(d), o.tolist(), strict=True):
        # PyTorch, like SciPy, aligns the elements with columns
        begin, end = max(offset, 0), min(row.size, rows + offset, columns)
        places = np.arange(begin, max(begin, end), dtype=np.int64)
        indices.append(np.stack([places - offset, places]))
        values.append(row[begin: max(begin, end)])
    if indices:
        result = CooArray(np.concatenate(indices, 1), np.concatenate(values), (rows, columns), False)
    else:
        result = CooArray(np.zeros((2, 0), np.int64), np.zeros(0, d.dtype), (rows, columns), True)
    out: Tensor = make(result)
    if layout is sparse_csr:
        return out.to_sparse_csr()
    return out.to_sparse_csc() if layout is sparse_csc else out


def spsolve(input: Tensor, other: Tensor, *, left: bool = True) -> NoReturn:
    """The solution of a sparse linear system, which PyTorch computes on CUDA devices only.

    Raises:
        NotImplementedError: always, as in PyTorch on the CPU.

    >>> import flambeau as torch
    >>> a = torch.eye(2).to_sparse_csr()
    >>> try:
    ...     torch.sparse.spsolve(a, torch.ones(2))
    ... except RuntimeError as error:
    ...     print(str(error)[:60])
    Could not run 'aten::_spsolve' with arguments from the 'Spar
    """
    raise NotImplementedError("Could not run 'aten::_spsolve' with arguments from the 'SparseCsrCPU' backend.")


__all__ = ["spdiags", "spsolve"]
