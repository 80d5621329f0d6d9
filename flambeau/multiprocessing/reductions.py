"""How tensors and storages are passed to other processes."""

from __future__ import annotations

from .._tensor.reductions import (
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
from ..runtime.shared_memory import identity as fd_id

__all__ = ["StorageWeakRef", "fd_id", "init_reductions", "rebuild_storage_empty", "rebuild_storage_fd",
           "rebuild_storage_filename", "rebuild_tensor", "rebuild_typed_storage", "reduce_storage", "reduce_tensor",
           "reduce_typed_storage"]
