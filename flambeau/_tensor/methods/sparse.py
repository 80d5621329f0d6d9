"""Methods of sparse tensors. Their implementations are imported on first use; dense tensors have the methods, too."""

from __future__ import annotations

import importlib
from typing import Any

from ...backends.sparse_array import CooArray, SparseArray
from ...devices import sparse_csr, strided
from ..tensor import Tensor


def implementation(module: str, name: str) -> Any:
    """A function of a module of `sparse`."""
    return getattr(importlib.import_module(f"..sparse.{module}", __package__), name)


def _deferred(module: str, name: str, doc: str, attribute: str | None = None) -> Any:
    """A method that imports its implementation when it is called."""
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return implementation(module, name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = attribute or name
    method.__doc__ = doc
    return method


_EXAMPLE = """
    >>> import flambeau as torch
    >>> {}
    {}
    """


def _doc(summary: str, call: str, result: str) -> str:
    return summary + "\n" + _EXAMPLE.format(call, result)


def _layout(self: Tensor) -> Any:
    """The memory layout: `torch.strided`, or a sparse one.

    >>> import flambeau as torch
    >>> torch.ones(2).layout
    flambeau.strided
    """
    a: Any = self._array
    return a.layout if isinstance(a, SparseArray) else strided


def _is_sparse(self: Tensor) -> bool:
    """Whether the tensor is sparse in coordinate format.

    >>> import flambeau as torch
    >>> torch.ones(2).to_sparse().is_sparse
    True
    """
    return isinstance(self._array, CooArray)


def _is_sparse_csr(self: Tensor) -> bool:
    """Whether the tensor is sparse in compressed row format.

    >>> import flambeau as torch
    >>> torch.eye(2).to_sparse_csr().is_sparse_csr
    True
    """
    a: Any = self._array
    return isinstance(a, SparseArray) and a.layout is sparse_csr


_EYE = "torch.eye(2).to_sparse()"

METHODS: dict[str, Any] = {
    "layout": property(_layout), "is_sparse": property(_is_sparse), "is_sparse_csr": property(_is_sparse_csr),
    "to_dense": _deferred("conversion", "to_dense", _doc(
        "A dense tensor of a sparse one; this tensor if it is dense, converted to `dtype` if that is given.\n\n"
        "    Args:\n        masked_grad: whether the gradient has only the places of this tensor; default True.",
        f"{_EYE}.to_dense()", "tensor([[1., 0.],\n            [0., 1.]])")),
    "_to_dense": _deferred("conversion", "to_dense", "A dense tensor of a sparse one."),
    "to_sparse": _deferred("conversion", "to_sparse", _doc(
        "A sparse tensor of a dense one, or of one with another layout.\n\n    Args:\n        sparse_dim: the number "
        "of sparse dimensions of a COO tensor; default: all.\n        layout: default `torch.sparse_coo`.\n        "
        "blocksize: (height, width), for layouts with blocks.\n        dense_dim: the number of dense dimensions of a "
        "compressed tensor.", "torch.eye(2).to_sparse().values()", "tensor([1., 1.])")),
    "to_sparse_coo": _deferred("conversion", "to_sparse_coo", _doc(
        "A tensor in coordinate format.", "torch.eye(2).to_sparse_coo().values()", "tensor([1., 1.])")),
    "to_sparse_csr": _deferred("conversion", "to_sparse_csr", _doc(
        "A tensor in compressed row format.", "torch.eye(2).to_sparse_csr().crow_indices()", "tensor([0, 1, 2])")),
    "to_sparse_csc": _deferred("conversion", "to_sparse_csc", _doc(
        "A tensor in compressed column format.", "torch.eye(2).to_sparse_csc().ccol_indices()", "tensor([0, 1, 2])")),
    "to_sparse_bsr": _deferred("conversion", "to_sparse_bsr", _doc(
        "A tensor in compressed row format of blocks of size `blocksize`.",
        "torch.eye(4).to_sparse_bsr((2, 2)).col_indices()", "tensor([0, 1])")),
    "to_sparse_bsc": _deferred("conversion", "to_sparse_bsc", _doc(
        "A tensor in compressed column format of blocks of size `blocksize`.",
        "torch.eye(4).to_sparse_bsc((2, 2)).row_indices()", "tensor([0, 1])")),
    **{f"_{name}": _deferred("conversion", name, "A tensor in another layout.", f"_{name}") for name in (
        "to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc")},
    "coalesce": _deferred("components", "coalesce", _doc(
        "The same COO tensor with sorted and distinct indices; values at equal places are added.",
        f"{_EYE}.coalesce().values()", "tensor([1., 1.])")),
    "is_coalesced": _deferred("components", "is_coalesced", _doc(
        "Whether the indices of a COO tensor are sorted and distinct.", f"{_EYE}.is_coalesced()", "True")),
    "indices": _deferred("components", "indices", _doc(
        "The indices of a coalesced COO tensor, (sparse dimensions, n).", f"{_EYE}.indices()",
        "tensor([[0, 1],\n            [0, 1]])")),
    "values": _deferred("components", "values", _doc(
        "The values of a coalesced COO tensor or of a compressed one, on the same memory.", f"{_EYE}.values()",
        "tensor([1., 1.])")),
    "sparse_dim": _deferred("components", "sparse_dim", _doc(
        "The number of sparse dimensions; 0 for a dense tensor.", f"{_EYE}.sparse_dim()", "2")),
    "dense_dim": _deferred("components", "dense_dim", _doc(
        "The number of dense dimensions; all of a dense tensor.", f"{_EYE}.dense_dim()", "0")),
    "crow_indices": _deferred("components", "crow_indices", _doc(
        "Where each row of a CSR or BSR tensor begins among its values.",
        "torch.eye(2).to_sparse_csr().crow_indices()", "tensor([0, 1, 2])")),
    "col_indices": _deferred("components", "col_indices", _doc(
        "The column of each value of a CSR or BSR tensor.", "torch.eye(2).to_sparse_csr().col_indices()",
        "tensor([0, 1])")),
    "ccol_indices": _deferred("components", "ccol_indices", _doc(
        "Where each column of a CSC or BSC tensor begins among its values.",
        "torch.eye(2).to_sparse_csc().ccol_indices()", "tensor([0, 1, 2])")),
    "row_indices": _deferred("components", "row_indices", _doc(
        "The row of each value of a CSC or BSC tensor.", "torch.eye(2).to_sparse_csc().row_indices()",
        "tensor([0, 1])")),
    "sparse_mask": _deferred("components", "sparse_mask", _doc(
        "The elements of this tensor at the places of a sparse one, in its layout.\n\n    Args:\n        mask: a "
        "sparse tensor of this tensor's shape.\n\n    Raises:\n        RuntimeError: the sizes differ.",
        f"torch.ones(2, 2).sparse_mask({_EYE}).values()", "tensor([1., 1.])")),
    "sparse_resize_": _deferred("resizing", "sparse_resize_", _doc(
        "Resize a COO tensor to a shape and numbers of sparse and dense dimensions, keeping its elements.",
        f"{_EYE}.sparse_resize_((3, 3), 2, 0).shape", "flambeau.Size([3, 3])")),
    "sparse_resize_and_clear_": _deferred("resizing", "sparse_resize_and_clear_", _doc(
        "Resize a COO tensor to a shape and numbers of sparse and dense dimensions, without elements.",
        f"{_EYE}.sparse_resize_and_clear_((3, 3), 1, 1)._nnz()", "0")),
    "resize_as_sparse_": _deferred("resizing", "resize_as_sparse_", _doc(
        "Resize a COO tensor to the shape and the numbers of sparse and dense dimensions of another one.",
        f"{_EYE}.resize_as_sparse_(torch.eye(3).to_sparse()).shape", "flambeau.Size([3, 3])")),
    "smm": _deferred("sparse_results", "smm", _doc(
        "The product of this sparse matrix and a dense one, as a sparse tensor of all elements.",
        f"{_EYE}.smm(torch.ones(2, 1)).to_dense()", "tensor([[1.],\n            [1.]])")),
    "sspaddmm": _deferred("sparse_results", "sspaddmm", _doc(
        "alpha * mat1 @ mat2 of a sparse and a dense matrix, plus beta * self, as a sparse tensor.",
        f"{_EYE}.sspaddmm({_EYE}, torch.ones(2, 2)).to_dense()", "tensor([[2., 1.],\n            [1., 2.]])")),
    "_indices": _deferred("components", "raw_indices", "The indices of a COO tensor, coalesced or not.", "_indices"),
    "_values": _deferred("components", "raw_values", "The values of a COO tensor, coalesced or not.", "_values"),
    "_nnz": _deferred("components", "nnz", "The number of stored elements.", "_nnz"),
    "_dimI": _deferred("components", "sparse_dim", "The number of sparse dimensions.", "_dimI"),
    "_dimV": _deferred("components", "dense_dim", "The number of dense dimensions.", "_dimV"),
    "_coalesced_": _deferred("components", "set_coalesced", "Declare whether indices are sorted and distinct.",
                             "_coalesced_"),
    "_sparse_mask_projection": _deferred("components", "mask_projection",
                                         "The elements at the places of a sparse tensor that both have.",
                                         "_sparse_mask_projection"),
}

__all__: list[str] = []
