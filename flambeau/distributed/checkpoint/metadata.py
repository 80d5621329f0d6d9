"""`torch.distributed.checkpoint.metadata`: what a checkpoint says about itself, in the file `.metadata`.

The classes and their fields are PyTorch's, because the file holds them pickled.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ... import devices, dtypes
from ..._tensor import Tensor
from ...shapes import Size

__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
           "TensorProperties", "TensorStorageMetadata"]


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: where it begins in the whole tensor, and its sizes."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    """Numbers of memory formats in files."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = {devices.contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
            devices.channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
            devices.preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT}


@dataclass
class TensorProperties:
    """What a tensor is made with, beside its sizes."""

    dtype: dtypes.dtype = field(default_factory=dtypes.get_default_dtype)
    layout: devices.layout = devices.strided
    requires_grad: bool = False
    memory_format: devices.memory_format = devices.contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        if self.memory_format not in _FORMATS:
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        return self.dtype, self.layout, self.requires_grad, _FORMATS[self.memory_format], self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        for memory_format, number in _FORMATS.items():
            if number is encoding:
                self.memory_format = memory_format
                return
        raise RuntimeError(f"Invalid torch.memory_format encoding: {encoding}")

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Those of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, devices.contiguous_format,
                                tensor.is_pinned())


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint, and the parts in which it is stored."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object of a checkpoint that is no tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """Where a checkpoint is, and the numbers of the calls that wrote and read it."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A checkpoint: its names, what they stand for, and where their bytes are."""

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The key of an object, or of a part of a tensor.

    Args:
        fqn: the name in the state dict.
        offset: where the part begins.
        index: the number of the part, as a hint; it does not count in comparisons.

    >>> import flambeau as torch
    >>> torch.distributed.checkpoint.metadata.MetadataIndex("weight", [0, 2])
    MetadataIndex(fqn='weight', offset=flambeau.Size([0, 2]), index=None)
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", Size(offset))
