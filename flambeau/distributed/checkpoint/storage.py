"""`torch.distributed.checkpoint.storage`: the interface of what holds checkpoints."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from ...runtime.futures import Future
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """One thing that was written: its key, its size, and what the storage needs to find it."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint.

    `save` calls, in this order: `reset` if there is an id, `set_up_storage_writer` and `prepare_local_plan` at all
    ranks, `prepare_global_plan` at the coordinator, `write_data` at all ranks, `finish` at the coordinator.
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin another checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Take this process's role; `rank` and `use_collectives` are keywords."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return this process's plan with data of the storage."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Return the plans of all processes with data of the storage."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write all items of a plan, whose data `planner.resolve_data` has."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the metadata; from then on the checkpoint counts."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this storage has such ids."""

    def storage_meta(self) -> StorageMeta | None:
        """Where the checkpoint is."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint.

    `load` calls, in this order: `reset` if there is an id, `read_metadata`, `set_up_storage_reader` and
    `prepare_local_plan` at all ranks, `prepare_global_plan` at the coordinator, `read_data` at all ranks.
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin with another checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the checkpoint's metadata; `rank` asks for that of one process."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Take the metadata and this process's role; `rank` and `use_collectives` are keywords."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return this process's plan with data of the storage."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans of all processes with data of the storage."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read all items of a plan into what the planner names."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this storage has such ids."""
