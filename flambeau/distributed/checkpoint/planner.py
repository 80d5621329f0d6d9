"""`torch.distributed.checkpoint.planner`: which process writes and reads what, and what decides on it."""

from __future__ import annotations

import abc
import io
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

from ..._tensor import Tensor
from ...shapes import Size
from .metadata import STATE_DICT_TYPE, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties

__all__ = ["BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner",
           "TensorWriteData", "WriteItem", "WriteItemType"]


class WriteItemType(Enum):
    """What is written: a whole tensor, a part of one, or the bytes of another object."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What is read: elements of a tensor, or the bytes of another object."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """The size of an object that is no tensor."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A part of a tensor: the part, the tensor's properties, and the sizes of the whole."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """One thing that a process writes."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of the whole tensor; None for other objects."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One thing that a process reads: `lengths` elements from `storage_offsets` of a stored part to `dest_offsets`."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What one process writes, with data of the storage and of the planner."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one process reads, with data of the storage and of the planner."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides which process writes what.

    `save` calls, in this order: `set_up_planner` and `create_local_plan` at all ranks, `create_global_plan` at the
    coordinator, `finish_plan` at all ranks, and `resolve_data` for each item.
    """

    _cached_save_plan: ClassVar[dict[str, SavePlan]] = {}
    _cached_final_save_plan: ClassVar[dict[str, SavePlan]] = {}
    _cached_all_plans: ClassVar[dict[str, list[SavePlan]]] = {}
    _cached_global_plan: ClassVar[dict[str, list[SavePlan]]] = {}
    _cached_metadata: ClassVar[dict[str, Metadata]] = {}

    @abc.abstractmethod
    def set_up_planner(self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:
        """Take the state dict that is saved."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Return what this process has to write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Return the plan of each process and the checkpoint's metadata."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take the plan that `create_global_plan` made for this process; the plan that is carried out."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Return the tensor, or the bytes, of an item; threads may call it at the same time."""


class LoadPlanner:
    """Decides which process reads what.

    `load` calls, in this order: `set_up_planner` and `create_local_plan` at all ranks, `create_global_plan` at the
    coordinator, `finish_plan` at all ranks, and for each item `load_bytes`, or `resolve_tensor` and `commit_tensor`.
    """

    @abc.abstractmethod
    def set_up_planner(self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        """Take the state dict that is loaded into, and the checkpoint's metadata."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Return what this process has to read."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plan of each process."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take the plan that `create_global_plan` made for this process; the plan that is carried out."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take the bytes of an object that is no tensor."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Return the buffer that bytes are read into.

        Raises:
            NotImplementedError: the planner has none.
        """
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Return the tensor that an item is copied to."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Take the tensor of `resolve_tensor`, which has been written to."""
