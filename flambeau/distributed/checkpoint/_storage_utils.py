"""The reader or the writer of a checkpoint's id."""

from __future__ import annotations

import os
from typing import Any

from .filesystem import FileSystemReader, FileSystemWriter


def _storage_setup(storage: Any, checkpoint_id: str | os.PathLike[str] | None, reader: bool = False) -> Any:
    """A reader or a writer, told of the id if there is one.

    Raises:
        RuntimeError: there is neither, or the id is no path (PyTorch's texts).
    """
    if storage:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    found = FileSystemReader if reader else FileSystemWriter
    if found.validate_checkpoint_id(checkpoint_id):
        return found(checkpoint_id)
    raise RuntimeError("Cannot detect which StorageReader or StorageWriter to use. Please specify the "
                       "storage_reader/storage_writer.")


__all__: list[str] = []
