"""Names of functions of sparse tensors that `torch` has beside those of `torch.sparse`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ... import dtypes
from ...backends.sparse_array import not_implemented
from ...devices import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ...engine.tensor_interface import layer
from ..argument_errors.messages import FUNCTION, explained
from ..argument_errors.out_arguments import check_records_nothing
from ..overriding.other_objects import reports_other_objects
from ..tensor import Tensor
from .constructors import validate_coo
from .invariants import check_compressed, check_compressed_values
from .products import _sparse_sparse_matmul as _sparse_sparse_matmul
from .recording import make, record
from .reductions import sparse_sum
from .resizing import resize_as_sparse_
from .shape import broadcast_to

_sparse_sum = sparse_sum
_validate_sparse_coo_tensor_args = validate_coo


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`torch.mm`.

    >>> import flambeau as torch
    >>> torch.dsmm(torch.eye(2), torch.eye(2).to_sparse())
    tensor([[1., 0.],
            [0., 1.]])
    """
    return layer.functions.mm(input, mat2)


def hsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`torch.mm`.

    >>> import flambeau as torch
    >>> torch.hsmm(torch.eye(2).to_sparse(), torch.eye(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return layer.functions.mm(input, mat2)


def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`torch.addmm`.

    >>> import flambeau as torch
    >>> torch.saddmm(torch.ones(2, 2), torch.eye(2).to_sparse(), torch.eye(2))
    tensor([[2., 1.],
            [1., 2.]])
    """
    return layer.functions.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def _sparse_broadcast_to(self: Tensor, size: Sequence[int]) -> Tensor:
    """A COO tensor broadcast to a shape."""
    out = make(broadcast_to(self._array, size))
    shape = tuple(self._array.shape)
    return record(out, "SparseBroadcastToBackward0", (self,), lambda g: (g.to_dense().sum_to_size(shape).to_sparse(),))


def _validate_sparse_compressed_tensor_args(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor,
                                            size: Sequence[int], layout: Any,
                                            check_pinning: bool | None = None) -> None:
    """Check the invariants of the components of a compressed tensor."""
    check_compressed(layout, compressed_indices._array, plain_indices._array, values._array, tuple(size))


def _validation(layout: Any) -> Any:
    def validate(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Sequence[int],
                 check_pinning: bool | None = None) -> None:
        check_compressed(layout, compressed_indices._array, plain_indices._array, values._array, tuple(size))

    validate.__name__ = validate.__qualname__ = f"_validate_{layout.name}_tensor_args"
    validate.__doc__ = f"Check the invariants of the components of a {layout.name} tensor."
    return validate


_validate_sparse_csr_tensor_args, _validate_sparse_csc_tensor_args = map(_validation, (sparse_csr, sparse_csc))
_validate_sparse_bsr_tensor_args, _validate_sparse_bsc_tensor_args = map(_validation, (sparse_bsr, sparse_bsc))


def _validate_compressed_sparse_indices(is_crow: bool, compressed_idx: Tensor, plain_idx: Tensor, cdim: int, dim: int,
                                        nnz: int) -> None:
    """Check the values of the indices of a compressed tensor with `cdim` rows of `dim` places (or columns)."""
    name, count = ("crow_indices", "nrows") if is_crow else ("ccol_indices", "ncols")
    if (n := compressed_idx.shape[-1]) != cdim + 1:
        raise RuntimeError(f"{name} have wrong shape: {name}.shape[-1] = {n} is not equal to {count} + 1 = {cdim + 1}")
    check_compressed_values(compressed_idx._array.reshape(-1, n), plain_idx._array.reshape(-1, nnz) if nnz else
                            plain_idx._array.reshape(compressed_idx._array.size // n, 0), nnz, dim, is_crow)


def _integral_array(kernel: str, tensor: Tensor) -> np.ndarray:
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise NotImplementedError(f'"{kernel}" not implemented for \'{tensor.dtype.legacy.removesuffix("Tensor")}\'')
    return tensor._array


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """The compressed row indices of a sorted vector of row indices: `out[i]` elements are in rows before `i`.

    Args:
        input: row indices in ascending order, of shape (nnz,), int32 or int64.
        size: number of rows.
        out_int32: whether the result is int32; int64 otherwise.

    Raises:
        RuntimeError: `input` is no vector.
        NotImplementedError: another dtype.

    >>> import flambeau as torch
    >>> torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    if input.dim() != 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    rows = _integral_array("convert_indices_from_coo_to_csr_cpu", input)
    counted = np.searchsorted(rows, np.arange(size + 1))
    return make(counted.astype(np.int32 if out_int32 else np.int64))


def _convert_indices_from_csr_to_coo(crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False,
                                     transpose: bool = False) -> Tensor:
    """The coordinates of the elements of compressed rows, (2, nnz); the inverse of the compression.

    Args:
        crow_indices: compressed row indices, (*batch, rows + 1), int32 or int64.
        col_indices: column indices, (*batch, nnz).
        out_int32: whether the result is int32; int64 otherwise.
        transpose: whether columns come before rows.

    Returns:
        (len(batch) + 2, nnz of all batches together), the batches' coordinates first.

    Raises:
        RuntimeError: the indices differ in their number of dimensions.
        NotImplementedError: another dtype.

    >>> import flambeau as torch
    >>> torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1]))
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    if crow_indices.dim() != col_indices.dim():
        raise RuntimeError("crow_indices and col_indices are supposed to have the same dimensionality, but got "
                           f"{crow_indices.dim()} and {col_indices.dim()} dimensional tensors, respectively.")
    compressed = _integral_array("convert_indices_from_csr_to_coo_cpu", crow_indices)
    columns = _integral_array("convert_indices_from_csr_to_coo_cpu", col_indices)
    batch, nnz = columns.shape[:-1], columns.shape[-1]
    lengths = np.diff(compressed.reshape(-1, compressed.shape[-1]), axis=-1)
    rows = np.concatenate([np.repeat(np.arange(row.size), row) for row in lengths])
    coordinates = np.unravel_index(np.repeat(np.arange(len(lengths)), nnz), batch) if batch else ()
    pair = (columns.ravel(), rows) if transpose else (rows, columns.ravel())
    return make(np.stack((*coordinates, *pair)).astype(np.int32 if out_int32 else np.int64))


def _refuse_copy(name: str, of: str, input: Tensor, out: Tensor | None) -> NoReturn:
    """Raise PyTorch's error for a copy of indices or values of a sparse tensor, for which it has no kernel."""
    error = explained(FUNCTION, name, (input,), {} if out is None else {"out": out})
    if error is not None:
        raise error
    if out is not None:
        check_records_nothing(name, (input,), (out,))
    layout = input.layout
    if layout is sparse_coo or (layout is not strided and name == "values_copy"):
        raise not_implemented(name, layout)
    names = {strided: "Strided", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc", sparse_bsr: "SparseBsr"}
    raise RuntimeError(f"{name.removesuffix('_copy')} expected sparse {of}tensor layout but got "
                       f"{names.get(layout, 'SparseBsc')}")


def indices_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the indices of a sparse tensor, for which PyTorch has a name and no kernel.

    Raises:
        NotImplementedError, RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.indices_copy(torch.ones(1))
    Traceback (most recent call last):
        ...
    RuntimeError: indices expected sparse coordinate tensor layout but got Strided
    """
    _refuse_copy("indices_copy", "coordinate ", input, out)


def values_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the values of a sparse tensor, for which PyTorch has a name and no kernel.

    Raises:
        NotImplementedError, RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.values_copy(torch.ones(1))
    Traceback (most recent call last):
        ...
    RuntimeError: values expected sparse tensor layout but got Strided
    """
    _refuse_copy("values_copy", "", input, out)


def crow_indices_copy(input: Tensor) -> Tensor:
    """A copy of `input.crow_indices()`.

    >>> import flambeau as torch
    >>> torch.crow_indices_copy(torch.eye(2).to_sparse_csr())
    tensor([0, 1, 2])
    """
    return input.crow_indices().clone()


def col_indices_copy(input: Tensor) -> Tensor:
    """A copy of `input.col_indices()`.

    >>> import flambeau as torch
    >>> torch.col_indices_copy(torch.eye(2).to_sparse_csr())
    tensor([0, 1])
    """
    return input.col_indices().clone()


def ccol_indices_copy(input: Tensor) -> Tensor:
    """A copy of `input.ccol_indices()`.

    >>> import flambeau as torch
    >>> torch.ccol_indices_copy(torch.eye(2).to_sparse_csc())
    tensor([0, 1, 2])
    """
    return input.ccol_indices().clone()


def row_indices_copy(input: Tensor) -> Tensor:
    """A copy of `input.row_indices()`.

    >>> import flambeau as torch
    >>> torch.row_indices_copy(torch.eye(2).to_sparse_csc())
    tensor([0, 1])
    """
    return input.row_indices().clone()


_FUNCTIONS = (ccol_indices_copy, col_indices_copy, crow_indices_copy, dsmm, hsmm, indices_copy, resize_as_sparse_,
              row_indices_copy, values_copy,
              saddmm)
for _function in _FUNCTIONS:
    globals()[_function.__name__] = reports_other_objects(_function, _function.__name__)

__all__ = ["ccol_indices_copy", "col_indices_copy", "crow_indices_copy", "dsmm", "hsmm", "resize_as_sparse_",
           "row_indices_copy", "saddmm"]
