"""Names of safetensors files and of what they say of parts of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...shapes import Size

_metadata_fn = "model.safetensors.index.json"

FILE_NAME = "model-{cpt_idx}-of-{num_files}"
SHARDED_FILE_NAME = "shard-{shard_idx}-model-{cpt_idx}-of-{num_files}"
SUFFIX = ".safetensors"
SHARDED_DIR_NAME = "sharded"
CUSTOM_METADATA_KEY = "DCP_SHARDING_INFO"
SAVED_OFFSETS_KEY = "saved_offsets"
DCP_VERSION_KEY, HF_DCP_VERSION = "DCP_VERSION", 1.0
FORMAT_KEY, FORMAT_VALUE = "format", "pt"


@dataclass
class _HFStorageInfo:
    """Where a part of a tensor is: its file, its shape and its dtype."""

    relative_path: str
    shape: Size
    dtype: Any


def _gen_file_name(index: int, largest_index: int, shard_index: int | None = None) -> str:
    """Return the name of a file of a checkpoint, or of one process's file of it.

    Args:
        index: its number, from 1 on.
        largest_index: the number of files.
        shard_index: the number of the process, from 1 on.
    """
    numbers = {"cpt_idx": f"{index:05}", "num_files": f"{largest_index:05}"}
    if shard_index is None:
        return FILE_NAME.format(**numbers) + SUFFIX
    return SHARDED_FILE_NAME.format(shard_idx=f"{shard_index:05}", **numbers) + SUFFIX


__all__: list[str] = []
