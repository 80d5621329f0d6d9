"""Checkpoints as files of `torch.save`, and back."""

from __future__ import annotations

import os
import warnings
from typing import Any

from ... import distributed as dist
from ..._tensor import Tensor, functions
from ...runtime.futures import Future
from ...serialization import load, save
from ...shapes import Size
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import STATE_DICT_TYPE, Metadata, TensorProperties, TensorStorageMetadata
from .planner import LoadItemType, LoadPlan, LoadPlanner
from .planner_helpers import _create_chunk_list
from .state_dict_loader import _load_state_dict
from .state_dict_saver import _save_state_dict
from .storage import StorageReader

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save", "torch_save_to_dcp"]

_PathLike = str | os.PathLike[str]


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of `torch.save` at one rank, which sends tensors to the others.

    Args:
        checkpoint_id: the file.
        coordinator_rank: the rank that reads.
    """

    def __init__(self, checkpoint_id: _PathLike | None = None, coordinator_rank: int = 0) -> None:
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank
        self.is_coordinator = False

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        return Metadata(state_dict_metadata={})  # `DynamicMetaLoadPlanner` makes it of the state dict

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        stored: dict[str, Any] = {}
        if self.is_coordinator:
            assert self.checkpoint_id is not None
            stored = load(self.checkpoint_id, map_location="cpu", weights_only=False)
        for item in plan.items:
            if item.type is LoadItemType.BYTE_IO:
                raise RuntimeError(f"Non-tensor value identified at {item.storage_index.fqn}. At this time "
                                   f"{type(self).__name__} only supports loading Tensors.")
            target = planner.resolve_tensor(item).detach()
            value = (stored[item.storage_index.fqn].contiguous() if self.is_coordinator
                     else functions.empty(planner.state_dict[item.storage_index.fqn].size(),  # type: ignore[attr-defined]
                                          dtype=target.dtype))
            if dist.is_initialized():
                dist.broadcast(value, src=self.coordinator_rank)
            region = tuple(slice(start, start + size)
                           for start, size in zip(item.storage_offsets, item.lengths, strict=True))
            target.copy_(value[region])
            planner.commit_tensor(item, target)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.is_coordinator = is_coordinator
        try:
            rank = dist.get_rank()
        except ValueError:  # there are no others
            rank = self.coordinator_rank
        if is_coordinator and rank != self.coordinator_rank:
            raise AssertionError(f"the coordinator is rank {rank}, not {self.coordinator_rank}")
        if self.checkpoint_id is None:
            raise AssertionError("there is no file: pass checkpoint_id")

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def reset(self, checkpoint_id: _PathLike | None = None) -> None:
        self.checkpoint_id = checkpoint_id

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _PathLike) -> bool:
        return os.path.isfile(checkpoint_id)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Loads from a storage without metadata: the shapes are those of the state dict."""

    def set_up_planner(self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        entries: dict[str, Any] = {}
        for name, value in self.state_dict.items():
            if not isinstance(value, Tensor):
                raise RuntimeError(f"Non-tensor value identified at {name}. At this time {type(self).__name__} only "
                                   "supports loading Tensors.")
            chunks = _create_chunk_list(value)
            for chunk in chunks:  # the whole tensor is stored
                chunk.offsets, chunk.sizes = Size([0] * value.ndim), value.size()
            entries[name] = TensorStorageMetadata(TensorProperties(dtype=value.dtype), value.size(), chunks)
        self.metadata = Metadata(state_dict_metadata=entries)


def dcp_to_torch_save(dcp_checkpoint_dir: _PathLike, torch_save_path: _PathLike) -> None:
    """Read a checkpoint, whole, in this process, and write it with `torch.save`.

    Args:
        dcp_checkpoint_dir: the checkpoint's folder.
        torch_save_path: the file.
    """
    state: STATE_DICT_TYPE = {}
    _load_state_dict(state, FileSystemReader(dcp_checkpoint_dir), no_dist=True, planner=_EmptyStateDictLoadPlanner())
    save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: _PathLike, dcp_checkpoint_dir: _PathLike) -> None:
    """Read a file of `torch.save`, which is trusted, and write a checkpoint in this process.

    Args:
        torch_save_path: the file.
        dcp_checkpoint_dir: the checkpoint's folder.
    """
    state = load(torch_save_path, weights_only=False)
    with warnings.catch_warnings():
        _save_state_dict(state, FileSystemWriter(dcp_checkpoint_dir), no_dist=True)
