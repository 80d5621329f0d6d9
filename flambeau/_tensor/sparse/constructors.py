"""Constructors of sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.bit_views import resolve
from ...backends.sparse_array import LAYOUT_NAMES, CompressedArray, CooArray
from ...devices import layout as layout_type
from ...devices import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ...kernels.sparse import fits_flat
from ..creation.from_data import tensor
from ..dispatch.bit_resolution import resolved
from ..tensor import Tensor
from .gathering import values_at
from .invariants import (
    COMPRESSED,
    check_components,
    check_compressed,
    check_coo,
    check_index_dtypes,
    component_names,
    should_check,
    sizes_text,
    warn_of_beta,
)
from .recording import is_sparse, make, record

_OPTIONS = "torch.dtype dtype = None, torch.device device = None, bool "
_CHECKS = "requires_grad = False, bool check_invariants = None"
_COO_SIGNATURES = tuple(f"({arguments}, *, {_OPTIONS}{options})" for arguments, options in (
    ("object indices, object values", f"pin_memory = False, bool {_CHECKS}, bool is_coalesced = None"),
    ("object indices, object values, tuple of ints size",
     f"pin_memory = False, bool {_CHECKS}, bool is_coalesced = None"),
    ("tuple of ints size", _CHECKS)))


def _component(data: Any, dtype: Any) -> Tensor:
    """A component from a constructor's argument: the tensor itself where it has the dtype, else a new tensor."""
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "sparse_coo_tensor")
    if isinstance(data, Tensor):
        return data if dtype is None or data.dtype is dtype else data.to(dtype)
    return tensor(data, dtype=dtype)


def _is_size(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and all(isinstance(n, (int, np.integer)) and not isinstance(n, bool)
                                                for n in x)


def _finish(out: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        if out._array.dtype.kind not in "fcV":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        out.requires_grad = True
    return out


def sparse_coo_tensor(*args: Any, indices: Any = None, values: Any = None, size: Any = None, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None, is_coalesced: bool | None = None) -> Tensor:
    """A sparse tensor in coordinate format, with `values[k]` at `indices[:, k]`. Values at equal places add up.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse_coo_tensor.html

    Args:
        indices: int64, (sparse dimensions, n).
        values: (n, *dense dimensions).
        size: the shape; default: the smallest that contains all indices. A shape alone makes a tensor without values.
        dtype: of the values; default: inferred from them.
        requires_grad: whether operators on it are recorded.
        check_invariants: check that the indices are valid; default: see `torch.sparse.check_sparse_tensor_invariants`.
        is_coalesced: declare that indices are sorted and distinct.

    Raises:
        RuntimeError: the shapes do not fit, or an invariant is violated.

    >>> import flambeau as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3), check_invariants=True)
    tensor(indices=tensor([[0, 1],
                           [2, 0]]),
           values=tensor([3., 4.]),
           size=(2, 3), nnz=2, layout=flambeau.sparse_coo)
    """
    given = dict(zip(("indices", "values", "size"), args, strict=False))
    indices, values, size = given.get("indices", indices), given.get("values", values), given.get("size", size)
    devices.check(device)
    if values is None:
        if size is None and _is_size(indices):
            indices, size = None, indices
        if size is None and indices is None:
            raise TypeError('sparse_coo_tensor() missing 1 required positional arguments: "size"')
        if indices is not None or not _is_size(size):
            kind = "Tensor" if isinstance(indices, Tensor) else type(indices).__name__
            raise TypeError(f"sparse_coo_tensor() received an invalid combination of arguments - got ({kind}), but "
                            "expected one of:\n" + "".join(f" * {text}\n" for text in _COO_SIGNATURES))
        return _finish(empty_coo(tuple(map(int, size)), len(size), 0, dtype), requires_grad)
    check = should_check(check_invariants)
    values = _component(values, dtype)
    indices = _component(indices, dtypes.int64)
    if is_sparse(indices) or is_sparse(values):
        raise RuntimeError("expected indices and values to be strided tensors")
    if size is None:
        size = _inferred_size(indices._array, values._array)
    elif not isinstance(size, (tuple, list)):
        raise TypeError(f"sparse_coo_tensor(): argument 'size' (position 3) must be tuple of ints, not "
                        f"{type(size).__name__}")
    out = coo(indices, values, tuple(map(int, size)), coalesced=is_coalesced, check=check)
    return _finish(out, requires_grad)


def _inferred_size(indices: np.ndarray, values: np.ndarray) -> tuple[int, ...]:
    """The smallest size that contains all indices."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {sizes_text(indices.shape)}")
    dense = values.shape[1:]
    if not indices.size:
        return (0,) * indices.shape[0] + dense
    for d, row in enumerate(indices):
        if (low := int(row.min())) < 0:
            raise RuntimeError(f"found negative index {low} for dim {d}")
    return (*(int(n) + 1 for n in indices.max(1)), *dense)


def coo(indices: Tensor, values: Tensor, size: tuple[int, ...], *, coalesced: bool | None = None,
        check: bool = False) -> Any:
    """A COO tensor on components, recorded as a function of the values."""
    values = resolved(values)
    if not values._array.ndim:
        values = values.expand((1,))
    a, v = indices._array, values._array
    if check:
        check_coo(a, v, size, coalesced)
    check_components(a, v, size)
    if any(n < 0 for n in size) or not fits_flat(size):
        raise RuntimeError("numel: integer multiplication overflow")
    out = make(CooArray(a, v, size, v.shape[0] < 2 if coalesced is None else bool(coalesced)))
    return record(out, "SparseCooTensorWithDimsAndTensorsBackward0", (values,),
                  lambda g: (values_at(g, indices, size),))


def empty_coo(size: tuple[int, ...], sparse_dim: int, dense_dim: int, dtype: Any = None) -> Any:
    """A COO tensor without elements."""
    if any(n < 0 for n in size):
        raise RuntimeError("numel: integer multiplication overflow")
    d = dtype or dtypes.get_default_dtype()
    dense = size[sparse_dim:]
    return make(CooArray(np.zeros((sparse_dim, 0), np.int64), np.zeros((0, *dense), d.numpy), size, True))


def compressed(kind: layout_type, first: Tensor, second: Tensor, values: Tensor, size: tuple[int, ...]) -> Any:
    """A compressed tensor on components."""
    warn_of_beta(kind)
    return make(CompressedArray(kind, first._array, second._array, resolve(values._array), size))


def empty_compressed(kind: layout_type, size: tuple[int, ...], dtype: Any = None, index_dtype: Any = np.int64,
                     name: str = "empty") -> Any:
    """A compressed tensor without elements."""
    if kind in (sparse_bsr, sparse_bsc):
        raise RuntimeError(f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got "
                           f"size {sizes_text(size)}")
    if len(size) < 2:
        raise RuntimeError(f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got "
                           f"size {sizes_text(size)}")
    warn_of_beta(kind)
    d = dtype or dtypes.get_default_dtype()
    count = size[-2] if kind is sparse_csr else size[-1]
    batch = size[:-2]
    return make(CompressedArray(kind, np.zeros((*batch, count + 1), index_dtype), np.zeros((*batch, 0), index_dtype),
                                np.zeros((*batch, 0), d.numpy), size))


def _make_compressed(kind: layout_type, name: str, first: Any, second: Any, values: Any, size: Any, dtype: Any,
                     device: Any, requires_grad: bool, check_invariants: bool | None) -> Tensor:
    devices.check(device)
    check = should_check(check_invariants)
    values = _component(values, dtype)
    first, second = (x if isinstance(x, Tensor) else tensor(x) for x in (first, second))
    if size is None:
        size = _inferred_compressed_size(kind, first._array, second._array, values._array)
    size = tuple(map(int, size))
    if check:
        check_compressed(kind, first._array, second._array, values._array, size)
    else:
        warn_of_beta(kind)
        cname, pname = component_names(kind)
        check_index_dtypes(first._array, second._array, cname, pname)
    out = compressed(kind, first, second, values, size)
    record(out, "SparseCompressedTensorBackward0", (values,), lambda g: (compressed_values_at(g, out),))
    return _finish(out, requires_grad)


def compressed_values_at(g: Tensor, like: Tensor) -> Tensor:
    """The elements of a gradient of any layout at the places of a compressed tensor."""
    a: Any = g._array
    b: Any = like._array
    if isinstance(a, CompressedArray) and a.layout is b.layout and a.values.shape == b.values.shape and (
            np.array_equal(a.plain, b.plain) and np.array_equal(a.compressed, b.compressed)):
        return g.values()
    return (g.to_dense() if is_sparse(g) else g).sparse_mask(like.detach()).values()


def _inferred_compressed_size(kind: layout_type, first: np.ndarray, second: np.ndarray,
                              values: np.ndarray) -> tuple[int, ...]:
    """The shape from components: compressed indices count rows, plain ones are below the number of columns."""
    batch_dim = first.ndim - 1
    blocks = kind in (sparse_bsr, sparse_bsc)
    block_dim = 2 if blocks else 0
    if values.ndim <= batch_dim + block_dim:
        raise RuntimeError("values must have dimensionality > sum of batch and block dimensionalities "
                           f"(={batch_dim} + {block_dim}) but got {values.ndim}")
    block = values.shape[batch_dim + 1: batch_dim + 3] if blocks else (1, 1)
    if second.dtype.kind not in "iu":
        raise NotImplementedError("\"estimate_sparse_compressed_tensor_size\" not implemented for "
                                  f"'{dtypes.of(second.dtype).scalar_name}'")
    count = first.shape[-1] - 1 if first.shape[-1] else 0
    width = int(second.max()) + 1 if second.size else 0
    rows, columns = (count, width) if kind in (sparse_csr, sparse_bsr) else (width, count)
    return (*first.shape[:-1], rows * block[0], columns * block[1], *values.shape[batch_dim + block_dim + 1:])


def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any,
                             size: Sequence[int] | None = None, *, dtype: Any = None, layout: Any = None,
                             device: Any = None, pin_memory: bool = False,
                             requires_grad: bool = False, check_invariants: bool | None = None) -> Tensor:
    """A sparse tensor in a compressed format: CSR, CSC, BSR or BSC.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse_compressed_tensor.html

    Args:
        compressed_indices: (*batch, rows + 1), where each row (column) begins among the values.
        plain_indices: (*batch, n), the column (row) of each value.
        values: (*batch, n, *dense), or blocks (*batch, n, height, width, *dense).
        size: the shape; default: inferred.
        layout: `torch.sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.

    Raises:
        RuntimeError: the layout is not compressed, or an invariant is violated.

    >>> import flambeau as torch
    >>> x = torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [3., 4.], layout=torch.sparse_csr, check_invariants=True)
    >>> x.to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if layout not in COMPRESSED:
        text = "none" if layout is None else "Strided" if layout is strided else LAYOUT_NAMES[layout]
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {text}")
    return _make_compressed(layout, "sparse_compressed_tensor", compressed_indices, plain_indices, values, size, dtype,
                            device, requires_grad, check_invariants)


def _constructor(kind: layout_type, first: str, second: str, example: str) -> Any:
    """The constructor of one compressed layout."""
    name = f"{kind.name}_tensor"

    def construct(*args: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                  requires_grad: bool = False, check_invariants: bool | None = None, **named: Any) -> Tensor:
        given = {**dict(zip((first, second, "values", "size"), args, strict=False)), **named}
        for k, each in enumerate((first, second, "values"), 1):
            if each not in given:
                raise TypeError(f'{name}() missing {4 - k} required positional arguments: "{each}"')
        if layout is not None and layout is not kind:
            text = "Strided" if layout is strided else LAYOUT_NAMES[layout]
            raise RuntimeError(f"{name}: layout must be {LAYOUT_NAMES[kind]} but got {text}")
        return _make_compressed(kind, name, given[first], given[second], given["values"], given.get("size"), dtype,
                                device, requires_grad, check_invariants)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = f"""A sparse tensor in {LAYOUT_NAMES[kind].removeprefix("Sparse").upper()} format.

    See https://docs.pytorch.org/docs/stable/generated/torch.{name}.html

    Args:
        {first}: (*batch, n + 1), where each {"row" if first[1] == "r" else "column"} begins among the values.
        {second}: (*batch, number of values), the {"column" if first[1] == "r" else "row"} of each value.
        values: (*batch, number of values, {"height, width, " if kind in (sparse_bsr, sparse_bsc) else ""}*dense).
        size: the shape; default: inferred.

    Raises:
        RuntimeError: an invariant is violated.

    >>> import flambeau as torch
    >>> torch.{name}([0, 1, 2], [1, 0], {example}, check_invariants=True).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    return construct


sparse_csr_tensor = _constructor(sparse_csr, "crow_indices", "col_indices", "[3., 4.]")
sparse_csc_tensor = _constructor(sparse_csc, "ccol_indices", "row_indices", "[4., 3.]")
sparse_bsr_tensor = _constructor(sparse_bsr, "crow_indices", "col_indices", "[[[3.]], [[4.]]]")
sparse_bsc_tensor = _constructor(sparse_bsc, "ccol_indices", "row_indices", "[[[4.]], [[3.]]]")


def validate_coo(indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool | None = None) -> None:
    """Check the invariants of the components of a COO tensor."""
    check_components(indices._array, values._array, tuple(size))
    check_coo(indices._array, values._array, tuple(size), is_coalesced)


def empty(kind: layout_type, size: tuple[int, ...], dtype: Any = None, requires_grad: bool = False,
          name: str = "empty") -> Tensor:
    """A sparse tensor of a layout, without elements."""
    if kind is sparse_coo:
        return _finish(empty_coo(size, len(size), 0, dtype), requires_grad)
    return _finish(empty_compressed(kind, size, dtype, name=name), requires_grad)


__all__ = ["compressed", "compressed_values_at", "coo", "empty", "empty_compressed", "empty_coo", "sparse_bsc_tensor",
           "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
           "sparse_csr_tensor", "validate_coo"]
