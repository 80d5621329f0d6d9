"""`torch.distributed.checkpoint`: state dicts of several processes in files that any number of processes reads.

https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

from __future__ import annotations

import importlib
from typing import Any

from ... import config
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

__all__ = ["BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner",
           "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "HuggingFaceStorageReader",
           "HuggingFaceStorageWriter", "LoadPlan", "LoadPlanner", "Metadata",
           "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter", "TensorStorageMetadata",
           "WriteItem", "async_save", "load", "load_state_dict", "save", "save_state_dict"]

#: submodules that are imported when they are first used
_SUBMODULES = frozenset({"format_utils", "state_dict"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__package__}.{name}")
    from ..names import MODULES

    if f"checkpoint.{name}" in MODULES:
        return MODULES[f"checkpoint.{name}"]
    raise AttributeError(f"module '{config.module_name}.distributed.checkpoint' has no attribute '{name}'")
