"""`DefaultSavePlanner` and `DefaultLoadPlanner`: nested state dicts, in which each tensor part is stored once."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable
from typing import Any

from ..._tensor import Tensor, functions
from ...serialization import load, save
from ._dedup_save_plans import dedup_save_plans
from ._nested_dict import FLATTEN_MAPPING, flatten_state_dict
from ._traverse import set_element
from .global_plan import _validate_global_plan, create_default_global_save_plan
from .metadata import STATE_DICT_TYPE, Metadata, MetadataIndex, StorageMeta, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .planner_helpers import (
    _create_default_metadata_only_plan,
    _create_read_items,
    _init_state_dict,
)
from .utils import find_state_dict_object

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan",
           "create_default_global_save_plan", "create_default_local_load_plan", "create_default_local_save_plan"]


def narrow_tensor_by_index(tensor: Tensor, offsets: Iterable[int], sizes: Iterable[int]) -> Tensor:
    """A view of a part of a tensor.

    Args:
        tensor: the tensor.
        offsets: where the part begins.
        sizes: its sizes.
    """
    return tensor[tuple(slice(start, start + count) for start, count in zip(offsets, sizes, strict=True))]


class DefaultSavePlanner(SavePlanner):
    """Saves nested state dicts; what several processes have is written by the one with the fewest bytes so far.

    Args:
        flatten_state_dict: whether names are paths through nested dicts.
        flatten_sharded_tensors: without effect.
        dedup_replicated_tensors: without effect.
        dedup_save_to_lowest_rank: whether the lowest of several ranks writes.
        enable_plan_caching: whether a plan that equals that of the save before is not sent again.
    """

    mappings: FLATTEN_MAPPING

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
                 enable_plan_caching: bool = False) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}
        self._cached_plans_key = type(self).__name__
        self._enable_plan_caching = enable_plan_caching
        self._new_plan: SavePlan | None = None

    def set_up_planner(self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        if self._enable_plan_caching:
            if SavePlanner._cached_save_plan.get(self._cached_plans_key) == plan:
                return SavePlan([], usable=False)  # the coordinator has it
            self._new_plan = plan
        return plan

    def _create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        plans, metadata = create_default_global_save_plan(dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank))
        if self.flatten_state_dict:
            merged: FLATTEN_MAPPING = {}
            for plan in reversed(plans):
                merged.update(plan.planner_data)
            metadata = dataclasses.replace(metadata, planner_data=merged)
        errors = "; ".join(_validate_global_plan(plans, metadata))
        if errors:
            shown = errors if len(errors) <= 500 else errors[:500] + "... (truncated)"
            raise ValueError(f"Failed to validate global plan: {shown}")
        return plans, metadata

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        if not self._enable_plan_caching:
            self.global_plan, self.metadata = self._create_global_plan(all_plans)
            return self.global_plan, self.metadata
        key = self._cached_plans_key
        before = SavePlanner._cached_all_plans.get(key, all_plans)
        known = SavePlanner._cached_global_plan.get(key, [None] * len(all_plans))
        merged = [new if new.usable else old for old, new in zip(before, all_plans, strict=True)]
        if key in SavePlanner._cached_global_plan and not any(plan.usable for plan in all_plans):
            self.global_plan = SavePlanner._cached_global_plan[key]
            self.metadata = dataclasses.replace(SavePlanner._cached_metadata[key])
        else:
            self.global_plan, self.metadata = self._create_global_plan(merged)
        SavePlanner._cached_all_plans[key] = merged
        SavePlanner._cached_global_plan[key] = self.global_plan
        SavePlanner._cached_metadata[key] = self.metadata
        return [SavePlan([], usable=False) if old == new else new
                for old, new in zip(known, self.global_plan, strict=True)], self.metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        if self._enable_plan_caching:
            key = self._cached_plans_key
            if new_plan.usable:
                SavePlanner._cached_final_save_plan[key] = new_plan
            new_plan = SavePlanner._cached_final_save_plan[key]
            if self._new_plan is not None:  # only now: what failed is sent again
                SavePlanner._cached_save_plan[key], self._new_plan = self._new_plan, None
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Return the object of a key; planners of programs override it."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Return the tensor or the bytes that are written; planners of programs override it."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        file = io.BytesIO()
        save(object, file)
        return file


class DefaultLoadPlanner(LoadPlanner):
    """Loads into nested state dicts.

    Args:
        flatten_state_dict: whether names are paths through nested dicts.
        flatten_sharded_tensors: without effect.
        allow_partial_load: whether names that the checkpoint lacks keep their values, instead of an error.
    """

    original_state_dict: STATE_DICT_TYPE
    mappings: FLATTEN_MAPPING

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 allow_partial_load: bool = False) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        _init_state_dict(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name, loaded = read_item.dest_index.fqn, load(value, weights_only=False)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], loaded)
        else:
            self.state_dict[name] = loaded

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        pass

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """Return the tensor, or this process's part, of a key; planners of programs override it."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """Return the elements that an item is copied to; planners of programs override it."""
        return narrow_tensor_by_index(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads into an empty state dict, which gets what the checkpoint has.

    Args:
        keys: names, or beginnings of paths, to load; all if None.
    """

    def __init__(self, keys: Iterable[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _should_include_key(self, key: str, metadata: Metadata) -> bool:
        if self.keys is None or key in self.keys:
            return True
        path = (metadata.planner_data or {}).get(key, ())
        return not {".".join(map(str, path[:i + 1])) for i in range(len(path))}.isdisjoint(self.keys)

    def set_up_planner(self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        assert not state_dict, "the state dict must be empty"
        assert metadata is not None
        paths = metadata.planner_data or {}
        for name, entry in metadata.state_dict_metadata.items():
            if self._should_include_key(name, metadata):
                value: Any = entry
                if isinstance(entry, TensorStorageMetadata):
                    value = functions.empty(entry.size, dtype=entry.properties.dtype)
                set_element(state_dict, paths.get(name, (name,)), value)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """What this process reads.

    Args:
        state_dict: a flat state dict.
        metadata: the checkpoint's.
        strict: whether names that the checkpoint lacks are an error.

    Raises:
        RuntimeError: the checkpoint lacks a name (PyTorch's text).
        ValueError: a tensor has another shape there (PyTorch's text).
    """
    items = []
    for name, value in state_dict.items():
        entry = metadata.state_dict_metadata.get(name)
        if entry is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        if isinstance(entry, TensorStorageMetadata) and isinstance(value, Tensor) and entry.size != value.size():
            raise ValueError(f"Size mismatch between saved {entry.size} and current: {value.size()} for {name}")
        items += _create_read_items(name, entry, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are: each process reads what it needs.

    Args:
        all_plans: the plans of all processes.
    """
    return all_plans


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """All that this process could write.

    Args:
        state_dict: a flat state dict.
        is_coordinator: without effect.
    """
    return _create_default_metadata_only_plan(state_dict)


def _create_default_local_metadata(state_dict: STATE_DICT_TYPE) -> Metadata:
    """The metadata of a checkpoint of this process alone."""
    return create_default_global_save_plan([_create_default_metadata_only_plan(state_dict)])[1]
