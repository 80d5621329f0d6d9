"""`torch.sparse`'s tensors with two zeros in four elements, which need CUDA, as in PyTorch."""

from __future__ import annotations

from typing import Any, NoReturn

from .._tensor import Tensor


def _refuse_to_prune(device: Any) -> NoReturn:
    raise NotImplementedError(
        f"Could not run 'aten::_sparse_semi_structured_tile' with arguments from the '{str(device).upper()}' backend. "
        "This could be because the operator doesn't exist for this backend.")


def _refuse(device: Any) -> NoReturn:
    raise RuntimeError(f"Error original_tensor.device= {device} is not supported! Only CUDA tensors are currently "
                       "supported.")


class SparseSemiStructuredTensor(Tensor):
    """A matrix with two zeros in four elements; none can be made without CUDA.

    >>> import flambeau as torch
    >>> issubclass(torch.sparse.SparseSemiStructuredTensor, torch.Tensor)
    True
    """

    BACKEND = ""  #: the library, of the subclasses
    packed = meta = packed_t = meta_t = compressed_swizzled_bitmask = None
    fuse_transpose_cusparselt = False
    alg_id_cusparselt = 0

    def __new__(cls, shape: Any, packed: Any, meta: Any, packed_t: Any, meta_t: Any, compressed_swizzled_bitmask: Any,
                fuse_transpose_cusparselt: bool = False, alg_id_cusparselt: int = 0,
                requires_grad: bool = False) -> NoReturn:
        for part in (packed, meta, packed_t, meta_t):
            if part is not None:
                _refuse(part.device)
        raise ValueError("At least one of packed or packed_t must be provided")

    @classmethod
    def from_dense(cls, original_tensor: Any) -> NoReturn:
        """Make one of a dense matrix.

        Raises:
            RuntimeError: always.
        """
        _refuse(original_tensor.device)


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """One in the format of CUTLASS.

    >>> import flambeau as torch
    >>> issubclass(torch.sparse.SparseSemiStructuredTensorCUTLASS, torch.Tensor)
    True
    """

    BACKEND = "cutlass"

    @classmethod
    def prune_dense_static_sort(cls, original_tensor: Any, algorithm: str = "") -> NoReturn:
        """Keep the two largest of four elements, along rows and columns.

        Raises:
            NotImplementedError: always: the tensor is not on a GPU.
        """
        _refuse_to_prune(original_tensor.device.type)


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """One in the format of cuSPARSELt.

    >>> import flambeau as torch
    >>> issubclass(torch.sparse.SparseSemiStructuredTensorCUSPARSELT, torch.Tensor)
    True
    """

    BACKEND = "cusparselt"

    @classmethod
    def prune_dense_static_sort(cls, original_tensor: Any, algorithm: str = "") -> NoReturn:
        """Keep the two largest of four elements, along rows and columns.

        Raises:
            NotImplementedError: always: the tensor is not on a GPU.
        """
        _refuse_to_prune(original_tensor.device.type)


def to_sparse_semi_structured(original_tensor: Any, transposed: bool = False, alg_id: int = 0) -> NoReturn:
    """Make a tensor with two zeros in four elements of a dense matrix.

    Args:
        original_tensor: the matrix.
        transposed: deprecated.
        alg_id: the algorithm of cuSPARSELt.

    Raises:
        RuntimeError: always: it is not on a GPU.

    >>> import flambeau as torch
    >>> torch.sparse.to_sparse_semi_structured(torch.ones(4, 4))
    Traceback (most recent call last):
      ...
    RuntimeError: Error original_tensor.device= cpu is not supported! Only CUDA tensors are currently supported.
    """
    _refuse(original_tensor.device)


__all__ = ["SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS",
           "to_sparse_semi_structured"]
