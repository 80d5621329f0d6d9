"""The invariants of sparse tensors: whether constructors check them, and the checks, with PyTorch's texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import LAYOUT_NAMES
from ...devices import layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ...kernels.sparse import flatten_indices
from ...warning_location import given, warn_once

#: [whether constructors check by default; None until a program decides]
enabled: list[bool | None] = [None]

_IMPLICIT = (
    "Sparse invariant checks are implicitly disabled. Memory errors (e.g. SEGFAULT) will occur when operating on a "
    "sparse tensor which violates the invariants, but checks incur performance overhead. To silence this warning, "
    "explicitly opt in or out. See `torch.sparse.check_sparse_tensor_invariants.__doc__` for guidance. ")
_BETA = ("Sparse {} tensor support is in beta state. If you miss a functionality in the sparse tensor support, please "
         "submit a feature request to https://github.com/pytorch/pytorch/issues.")

COMPRESSED = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)


def should_check(argument: bool | None) -> bool:
    """Whether a constructor checks, from its argument `check_invariants`; warns once if nobody has decided."""
    if argument is not None:
        return bool(argument)
    if enabled[0] is None:
        warn_once(_IMPLICIT)
    return bool(enabled[0])


def check_array(array: Any) -> None:
    """Check the components of a sparse array.

    Raises:
        RuntimeError: an invariant does not hold.
    """
    if array.layout is sparse_coo:
        check_coo(array.indices, array.values, array.shape, array.coalesced)
    else:
        check_compressed(array.layout, array.compressed, array.plain, array.values, array.shape)


def warn_of_beta(kind: layout) -> None:
    """Warn once that compressed layouts are in beta state, as PyTorch does when the first such tensor is made."""
    if not given & _BETA_TEXTS:
        warn_once(_BETA.format(LAYOUT_NAMES[kind].removeprefix("Sparse").upper()))


_BETA_TEXTS = frozenset(_BETA.format(name) for name in ("CSR", "CSC", "BSR", "BSC"))


def sizes_text(shape: Sequence[int]) -> str:
    """Sizes as they appear in messages."""
    return str(list(map(int, shape)))


def check_components(indices: np.ndarray, values: np.ndarray, size: Sequence[int]) -> None:
    """Check the shapes of the components of a COO tensor, which every constructor does.

    Raises:
        RuntimeError: a shape does not fit.
    """
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {sizes_text(indices.shape)}")
    sparse_dim, dense_dim = indices.shape[0], values.ndim - 1
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
                           f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}")
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError("indices and values must have same nnz, but got nnz from indices: "
                           f"{indices.shape[1]}, nnz from values: {values.shape[0]}")
    expected = (values.shape[0], *size[sparse_dim:])
    if values.shape != expected:
        raise RuntimeError(f"values has incorrect size, expected {sizes_text(expected)}, got "
                           f"{sizes_text(values.shape)}")


def check_coo(indices: np.ndarray, values: np.ndarray, size: Sequence[int], coalesced: bool | None) -> None:
    """Check that indices of a COO tensor are within its size, and sorted if it is declared coalesced.

    Raises:
        RuntimeError: an invariant does not hold.
    """
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {sizes_text(indices.shape)}")
    sparse_dim, dense_dim = indices.shape[0], values.ndim - 1
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
                           f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}")
    if indices.size:
        for d, row in enumerate(indices):
            low, high = int(row.min()), int(row.max())
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {d}")
            if high >= size[d]:
                raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found "
                                   f"index {high}")
    if coalesced and values.shape[0] > 1 and indices.shape[0]:
        flat = flatten_indices(indices, size[:sparse_dim])
        if (flat[1:] <= flat[:-1]).any():
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def component_names(kind: layout) -> tuple[str, str]:
    """The names of the compressed and the plain indices."""
    return ("crow_indices", "col_indices") if kind in (sparse_csr, sparse_bsr) else ("ccol_indices", "row_indices")


def check_compressed(kind: layout, compressed: np.ndarray, plain: np.ndarray, values: np.ndarray,
                     size: Sequence[int]) -> None:
    """Check shapes, dtypes and values of the components of a compressed tensor.

    Raises:
        RuntimeError: an invariant does not hold.
    """
    cname, pname = component_names(kind)
    by_row = cname == "crow_indices"
    blocks = kind in (sparse_bsr, sparse_bsc)
    block_dim = 2 if blocks else 0
    if compressed.ndim < 1:
        raise RuntimeError(f"{cname} must have dimensionality >= 1 but got {compressed.ndim}")
    if plain.ndim < 1:
        raise RuntimeError(f"{pname} must have dimensionality >= 1 but got {plain.ndim}")
    if compressed.ndim != plain.ndim:
        raise RuntimeError(f"{cname} and {pname} dimensionalities must be equal but got {compressed.ndim} and "
                           f"{plain.ndim}, respectively")
    batch_dim = compressed.ndim - 1
    if values.ndim <= batch_dim + block_dim:
        raise RuntimeError("values must have dimensionality > sum of batch and block dimensionalities "
                           f"(={batch_dim} + {block_dim}) but got {values.ndim}")
    dense_dim = values.ndim - batch_dim - block_dim - 1
    if len(size) != batch_dim + 2 + dense_dim:
        raise RuntimeError("tensor dimensionality must be sum of batch, base, and dense dimensionalities "
                           f"(={batch_dim} + 2 + {dense_dim}) but got {len(size)}")
    batches = [tuple(x.shape[:batch_dim]) for x in (compressed, plain, values)]
    if any(b != tuple(size[:batch_dim]) for b in batches):
        raise RuntimeError(f"all batch dimensions of {cname} (={sizes_text(batches[0])}), {pname} "
                           f"(={sizes_text(batches[1])}), and values (={sizes_text(batches[2])}) must be equal to "
                           f"tensor batch dimensions (={sizes_text(size[:batch_dim])})")
    for name, indices in ((cname, compressed), (pname, plain)):
        if indices.size and indices.shape[-1] > 1 and indices.strides[-1] != indices.itemsize:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    block = values.shape[batch_dim + 1: batch_dim + 3] if blocks else (1, 1)
    for d in (0, 1):
        if block[d] and size[batch_dim + d] % block[d]:
            raise RuntimeError(f"tensor shape[{batch_dim + d}] (={size[batch_dim + d]}) must be divisible with "
                               f"blocksize[{d}] (={block[d]}) as defined by values shape")
    rows, columns = (size[batch_dim + d] // max(block[d], 1) for d in (0, 1))
    count, width = (rows, columns) if by_row else (columns, rows)
    if compressed.shape[-1] != count + 1:
        what = ("row" if by_row else "column") + (" blocks" if blocks else "s")
        raise RuntimeError(f"{cname}.shape[-1] must be equal to the number of {what} + 1 (={count + 1}), but got "
                           f"{compressed.shape[-1]}")
    nnz = values.shape[batch_dim]
    if plain.shape[-1] != nnz:
        raise RuntimeError(f"{pname}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch_dim}], "
                           f"but got {plain.shape[-1]}")
    if values.shape[batch_dim + 1 + block_dim:] != tuple(size[batch_dim + 2:]):
        raise RuntimeError(f"values.shape[{batch_dim + 1 + block_dim}:] must be equal to tensor dense dimensions "
                           f"(={sizes_text(size[batch_dim + 2:])})")
    check_index_dtypes(compressed, plain, cname, pname)
    matrices = int(np.prod(size[:batch_dim]))
    check_compressed_values(compressed.reshape(matrices, count + 1), plain.reshape(matrices, nnz), nnz, width, by_row)


def check_index_dtypes(compressed: np.ndarray, plain: np.ndarray, cname: str, pname: str) -> None:
    """Check the dtypes of the indices of a compressed tensor."""
    names = [dtypes.of(x.dtype).scalar_name for x in (compressed, plain)]
    if names[0] != names[1]:
        raise RuntimeError(f"{cname} and {pname} must have the same dtype, bot got {names[0]} and {names[1]}, "
                           "respectively")
    if names[0] not in ("Int", "Long"):
        raise RuntimeError(f"{cname} and {pname} dtype must be Int or Long, but got {names[0]}")


def check_compressed_values(compressed: np.ndarray, plain: np.ndarray, nnz: int, width: int, by_row: bool) -> None:
    """Check the values of the indices of matrices of `nnz` elements each, `width` being the plain dimension."""
    cname, pname = ("crow_indices", "col_indices") if by_row else ("ccol_indices", "row_indices")
    across, along = ("ncols", "nrows") if by_row else ("nrows", "ncols")

    def require(condition: Any, text: str) -> None:
        if not condition:
            raise RuntimeError(f"`{text}` is not satisfied.")

    require((compressed[:, 0] == 0).all(), f"{cname}[..., 0] == 0")
    require((compressed[:, -1] == nnz).all(), f"{cname}[..., -1] == nnz")
    steps = np.diff(compressed, axis=1)
    require(((steps >= 0) & (steps <= width)).all(),
            f"0 <= {cname}[..., 1:] - {cname}[..., :-1] <= {across}")
    require(((plain >= 0) & (plain < width)).all(), f"0 <= {pname} < {across}")
    if nnz > 1:
        for starts, places in zip(compressed, plain, strict=True):
            rising = places[1:] > places[:-1]
            inner = starts[1:-1]
            rising[inner[(inner > 0) & (inner < nnz)] - 1] = True
            require(rising.all(), f"{pname}[..., {cname}[..., i - 1]:{cname}[..., i]] for all i = 1, ..., {along} are "
                                  "sorted and distinct along the last dimension values")


__all__ = ["COMPRESSED", "check_array", "check_components", "check_compressed", "check_compressed_values", "check_coo",
           "check_index_dtypes", "component_names", "enabled", "should_check", "sizes_text", "warn_of_beta"]
