"""Components of sparse tensors: `indices`, `values`, `coalesce`, `crow_indices` and the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.bit_views import resolve
from ...backends.sparse_array import CompressedArray, CooArray, SparseArray, not_implemented
from ...devices import strided
from ..tensor import Tensor, wrap
from .constructors import compressed_values_at, coo
from .conversion import coalesced, layout_name
from .gathering import sparse_at
from .recording import is_coo, is_sparse, make, needs, record


def _coo_of(self: Tensor, name: str) -> CooArray:
    """The array of a COO tensor.

    Raises:
        RuntimeError: another layout (PyTorch's text).
    """
    a: Any = self._array
    if a.__class__ is not CooArray:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {layout_name(a)}")
    return a


def _unchecked_coo(self: Tensor, name: str) -> CooArray:
    a: Any = self._array
    if a.__class__ is CooArray:
        return a
    if isinstance(a, CompressedArray):
        raise not_implemented(name, a.layout)
    raise NotImplementedError(str(not_implemented(name, strided)))


def coalesce(self: Tensor) -> Tensor:
    """The same COO tensor with sorted and distinct indices; values at equal places are added.

    >>> import flambeau as torch
    >>> x = torch.sparse_coo_tensor([[1, 1]], [3., 4.], (2,), check_invariants=True)
    >>> x.coalesce().values()
    tensor([7.])
    """
    a = _coo_of(self, "coalesce")
    if a.coalesced:
        return self
    return record(make(coalesced(a)), "CoalesceBackward0", (self,), lambda g: (g,))


def is_coalesced(self: Tensor) -> bool:
    """Whether the indices of a COO tensor are sorted and distinct.

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse().is_coalesced()
    True
    """
    return _coo_of(self, "is_coalesced").coalesced


def set_coalesced(self: Tensor, coalesced: bool) -> Tensor:
    """Declare whether the indices of a COO tensor are sorted and distinct, in place."""
    a = _unchecked_coo(self, "_coalesced_")
    self._array = CooArray(a.indices, a.values, a.shape, bool(coalesced))  # type: ignore[assignment]
    return self


def indices(self: Tensor) -> Tensor:
    """The indices of a coalesced COO tensor, (sparse dimensions, n).

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    a = _coo_of(self, "indices")
    if not a.coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return wrap(a.indices)


def values(self: Tensor) -> Tensor:
    """The values of a coalesced COO tensor or of a compressed tensor, a tensor on the same memory.

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse().values()
    tensor([1., 1.])
    """
    a: Any = self._array
    if not isinstance(a, SparseArray):
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    if isinstance(a, CooArray) and not a.coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    out = wrap(a.values)
    if isinstance(a, CooArray):
        return record(out, "ValuesBackward0", (self,),
                      lambda g: (coo(wrap(a.indices), g, a.shape, coalesced=True),))
    return record(out, "ValuesBackward0", (self,), lambda g: (with_values(self, g),))


def with_values(like: Tensor, g: Tensor) -> Tensor:
    """A tensor with the structure of `like` and other values, differentiable."""
    a: Any = like._array
    if isinstance(a, CooArray):
        return coo(wrap(a.indices), g, a.shape, coalesced=a.coalesced)
    return record(make(a.with_values(resolve(g._array))), "SparseCompressedTensorBackward0", (g,),
                  lambda h: (compressed_values_at(h, like),))


def raw_indices(self: Tensor) -> Tensor:
    """The indices of a COO tensor, coalesced or not."""
    return wrap(_unchecked_coo(self, "_indices").indices)


def raw_values(self: Tensor) -> Tensor:
    """The values of a COO tensor, coalesced or not, without a graph."""
    return wrap(_unchecked_coo(self, "_values").values)


def nnz(self: Tensor) -> int:
    """The number of stored elements (blocks), of each batch."""
    a: Any = self._array
    if not isinstance(a, SparseArray):
        raise NotImplementedError(str(not_implemented("_nnz", strided)))
    return int(a.nnz)


def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions; 0 for a dense tensor.

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse().sparse_dim()
    2
    """
    a: Any = self._array
    return a.sparse_dim if isinstance(a, SparseArray) else 0


def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions; all of a dense tensor.

    >>> import flambeau as torch
    >>> torch.ones(2, 2).to_sparse(1).dense_dim()
    1
    """
    a: Any = self._array
    return a.dense_dim if isinstance(a, SparseArray) else a.ndim


def _compressed_component(name: str, by_row: bool, attribute: str, example: str) -> Any:
    """The method that returns one component of compressed tensors."""
    def method(self: Tensor) -> Tensor:
        a: Any = self._array
        if not isinstance(a, CompressedArray) or a.by_row is not by_row:
            raise RuntimeError(f"{name} expected sparse {'row' if by_row else 'column'} compressed tensor layout but "
                               f"got {layout_name(a)}")
        return wrap(getattr(a, attribute))

    method.__name__ = method.__qualname__ = name
    kind = "csr" if by_row else "csc"
    what = ("where each " + ("row" if by_row else "column") + " begins" if attribute == "compressed" else
            "the " + ("column" if by_row else "row") + " of each value")
    method.__doc__ = f"""The {name} of a {kind.upper()} or B{kind[1:].upper()} tensor: {what}.

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse_{kind}().{name}()
    tensor({example})
    """
    return method


crow_indices = _compressed_component("crow_indices", True, "compressed", "[0, 1, 2]")
col_indices = _compressed_component("col_indices", True, "plain", "[0, 1]")
ccol_indices = _compressed_component("ccol_indices", False, "compressed", "[0, 1, 2]")
row_indices = _compressed_component("row_indices", False, "plain", "[0, 1]")


# ----- sparse_mask -------------------------------------------------------------------------------


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements of this tensor at the places of a sparse one, in its layout.

    Args:
        mask: a sparse tensor of this tensor's shape.

    Raises:
        RuntimeError: the sizes differ.

    >>> import flambeau as torch
    >>> torch.ones(2, 2).sparse_mask(torch.eye(2).to_sparse()).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    m: Any = mask._array
    if not isinstance(m, SparseArray):
        raise RuntimeError("sparse_mask(): expected mask to have sparse layout, but got Strided")
    if tuple(self._array.shape) != m.shape:
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(self._array.shape)} "
                           f"but mask has size {list(m.shape)}")
    layout = self.layout
    out = make(_masked(self.detach(), m))

    def rule(g: Tensor) -> tuple[Any]:
        return (g.to_dense() if layout is strided else g.sparse_mask(mask.detach()),)

    return record(out, "SparseMaskBackward0", (self,), rule) if needs(self) else out


def _masked(x: Tensor, m: Any) -> Any:
    if isinstance(m, CooArray):
        if is_sparse(x) and not is_coo(x):
            x = x.to_sparse_coo()
        if is_coo(x):
            source = coalesced(x._array)  # type: ignore[arg-type]
            if source.sparse_dim != m.sparse_dim:
                raise RuntimeError("sparse_mask(): the number of sparse dimensions in `self` should match that of the "
                                   f"`mask`. Got `self.sparse_dim() == {source.sparse_dim}` != `mask.sparse_dim() == "
                                   f"{m.sparse_dim}`.")
            taken = sparse_at(make(source), m.indices)._array
        elif not m.sparse_dim:
            taken = np.broadcast_to(x._array, (m.nnz, *x._array.shape))
        else:
            taken = x._array[tuple(m.indices)]
        return CooArray(m.indices.copy(), np.array(taken, order="C"), m.shape, m.coalesced)
    dense = x.to_dense()._array if is_sparse(x) else x._array
    if isinstance(m, CompressedArray) and not m.has_blocks and not m.batch_dim:
        from ...kernels.sparse import decompress

        along = decompress(m.compressed)
        rows, columns = (along, m.plain) if m.by_row else (m.plain, along)
        return m.with_values(dense[rows, columns])
    return _masked_batches(dense, m)


def _masked_batches(dense: np.ndarray, m: CompressedArray) -> CompressedArray:
    """The elements or blocks of a dense array at the places of a compressed one, batch by batch."""
    from ...kernels.sparse import decompress

    height, width = m.block_shape
    out = np.empty(m.values.shape, dense.dtype)
    for at in np.ndindex(*m.shape[: m.batch_dim]):
        along = decompress(m.compressed[at])
        rows, columns = (along, m.plain[at]) if m.by_row else (m.plain[at], along)
        x = dense[at]
        tiles = x.reshape(x.shape[0] // height, height, x.shape[1] // width, width, *x.shape[2:]).swapaxes(1, 2)
        picked = tiles[rows, columns]
        out[at] = picked if m.has_blocks else picked[:, 0, 0]
    return m.with_values(out)


def mask_projection(self: Tensor, mask: Tensor, accumulate_matches: bool = False) -> Tensor:
    """The elements of a COO tensor at the places of another one, at which it has elements."""
    if tuple(self._array.shape) != tuple(mask._array.shape):
        raise RuntimeError("_sparse_mask_projection(): operands have incompatible sizes; self has size "
                           f"{list(self._array.shape)} but mask has size {list(mask._array.shape)}")
    ones = make(mask._array.with_values(np.ones_like(mask._array.values)))  # type: ignore[attr-defined]
    return self.coalesce() * ones


__all__ = ["coalesce", "mask_projection", "sparse_mask", "with_values"]
