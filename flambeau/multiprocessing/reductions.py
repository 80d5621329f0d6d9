"""How tensors and storages are passed to other processes."""

from __future__ import annotations

from typing import Any, NoReturn

from .._tensor import Parameter, Tensor
from .._tensor.memory.reductions import (
    StorageWeakRef,
    init_reductions,
    rebuild_storage_empty,
    rebuild_storage_fd,
    rebuild_storage_filename,
    rebuild_tensor,
    rebuild_typed_storage,
    reduce_storage,
    reduce_tensor,
    reduce_typed_storage,
)
from .._tensor.sparse.constructors import sparse_compressed_tensor, sparse_coo_tensor
from ..devices import sparse_bsr, sparse_coo, sparse_csr
from ..runtime.shared_memory import identity as fd_id


class SharedCache(dict[Any, StorageWeakRef]):
    """References to storages by the handles under which other processes sent them."""

    limit = 128  #: the number of entries from which on dead ones are removed

    def __setitem__(self, key: Any, storage_ref: StorageWeakRef) -> None:
        super().__setitem__(key, storage_ref)
        if len(self) > self.limit:
            self.free_dead_references()

    def free_dead_references(self) -> None:
        """Remove references to memory that is freed."""
        for key in [key for key, reference in self.items() if reference.expired()]:
            del self[key]
        self.limit = max(128, 2 * len(self))


#: PyTorch's cache; here mapped memory is kept by its file, in `runtime.shared_memory`
shared_cache = SharedCache()


def storage_from_cache(cls: type, key: Any) -> None:
    """The storage of a handle in the cache: None."""


def rebuild_meta_tensor(tensor_cls: type, tensor_size: Any, tensor_stride: Any, tensor_offset: int, dtype: Any,
                        storage_size_bytes: int, requires_grad: bool) -> Tensor:
    """A tensor without memory."""
    from .._tensor import functions as fn

    result = fn.empty_strided(tuple(tensor_size), tuple(tensor_stride), dtype=dtype, device="meta")
    if tensor_cls is Parameter:
        return Parameter(result, requires_grad=requires_grad)
    return result.requires_grad_(requires_grad)


def rebuild_cuda_tensor(*args: Any) -> NoReturn:
    """A tensor on a GPU.

    Raises:
        AssertionError: always.
    """
    raise AssertionError("Torch not compiled with CUDA enabled")


def rebuild_event(device: Any, handle: Any) -> NoReturn:
    """An event of a GPU.

    Raises:
        AssertionError: always.
    """
    raise AssertionError("Torch not compiled with CUDA enabled")


def reduce_event(event: Any) -> tuple[Any, ...]:
    """The call that rebuilds an event in another process."""
    return rebuild_event, (event.device, event.ipc_handle())


def reduce_sparse_tensor(sparse: Tensor) -> tuple[Any, ...]:
    """The call that rebuilds a sparse tensor in another process, of its parts."""
    if sparse.layout is sparse_coo:
        parts = (*reduce_tensor(sparse._indices()), *reduce_tensor(sparse._values()))
        return rebuild_sparse_coo_tensor, (*parts, sparse.shape, sparse.is_coalesced())
    by_rows = sparse.layout in (sparse_csr, sparse_bsr)
    compressed, plain = (sparse.crow_indices(), sparse.col_indices()) if by_rows else (
        sparse.ccol_indices(), sparse.row_indices())
    parts = tuple(part for each in (compressed, plain, sparse.values()) for part in reduce_tensor(each))
    return rebuild_sparse_compressed_tensor, (*parts, sparse.shape, sparse.layout)


def rebuild_sparse_coo_tensor(rebuild_indices_func: Any, rebuild_indices_args: Any, rebuild_values_func: Any,
                              rebuild_values_args: Any, shape: Any, is_coalesced: bool) -> Tensor:
    """A sparse tensor (COO) of its parts."""
    indices, values = rebuild_indices_func(*rebuild_indices_args), rebuild_values_func(*rebuild_values_args)
    return sparse_coo_tensor(indices, values, shape, is_coalesced=is_coalesced)


def rebuild_sparse_compressed_tensor(
        rebuild_compressed_indices_func: Any, rebuild_compressed_indices_args: Any, rebuild_plain_indices_func: Any,
        rebuild_plain_indices_args: Any, rebuild_values_func: Any, rebuild_values_args: Any, shape: Any,
        layout: Any) -> Tensor:
    """A sparse tensor of a compressed layout of its parts."""
    compressed = rebuild_compressed_indices_func(*rebuild_compressed_indices_args)
    plain = rebuild_plain_indices_func(*rebuild_plain_indices_args)
    values = rebuild_values_func(*rebuild_values_args)
    return sparse_compressed_tensor(compressed, plain, values, shape, layout=layout)


def reduce_typed_storage_child(storage: Any) -> tuple[Any, ...]:
    """The call that rebuilds a typed storage of a class such as `FloatStorage`."""
    return rebuild_typed_storage_child, (storage._untyped_storage, type(storage))


def rebuild_typed_storage_child(storage: Any, storage_type: Any) -> Any:
    """A typed storage of a class."""
    return storage_type(wrap_storage=storage, _internal=True)


__all__ = ["SharedCache", "StorageWeakRef", "fd_id", "init_reductions", "rebuild_cuda_tensor", "rebuild_event",
           "rebuild_meta_tensor", "rebuild_sparse_compressed_tensor", "rebuild_sparse_coo_tensor",
           "rebuild_storage_empty", "rebuild_storage_fd", "rebuild_storage_filename", "rebuild_tensor",
           "rebuild_typed_storage", "rebuild_typed_storage_child", "reduce_event", "reduce_sparse_tensor",
           "reduce_storage", "reduce_tensor", "reduce_typed_storage", "reduce_typed_storage_child", "shared_cache",
           "storage_from_cache"]
