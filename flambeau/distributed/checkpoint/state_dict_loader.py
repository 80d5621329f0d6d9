"""`load`: all processes read their parts of a checkpoint, which another number of processes may have written."""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any

from ... import distributed as dist
from ...c10d.process_group import ProcessGroup
from ._storage_utils import _storage_setup
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .metadata import Metadata
from .planner import LoadPlan, LoadPlanner
from .stateful import Stateful
from .storage import StorageReader
from .utils import _api_bc_check, _DistWrapper

__all__ = ["load", "load_state_dict"]

_PathLike = str | os.PathLike[str]


def load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader,
                    process_group: ProcessGroup | None = None, coordinator_rank: int = 0, no_dist: bool = False,
                    planner: LoadPlanner | None = None) -> None:
    """Load a checkpoint without calls of `load_state_dict`; `load` takes its place.

    Args:
        state_dict: names and values, which are written to.
        storage_reader: what reads.
        process_group: the processes; all if None.
        coordinator_rank: which of them plans.
        no_dist: whether this process loads alone.
        planner: which process reads what.
    """
    warnings.warn("`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
                  FutureWarning, stacklevel=2)
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _is_alone(no_dist: bool, level: int, text: str) -> bool:
    alone = no_dist or not dist.is_initialized()
    if alone:
        warnings.warn(f"torch.distributed is {text}unavailable or uninitialized, assuming the intent is to load in a "
                      "single process.", stacklevel=level + 1)
    return alone


@_api_bc_check
def load(state_dict: dict[str, Any], *, checkpoint_id: _PathLike | None = None,
         storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None,
         process_group: ProcessGroup | None = None, no_dist: bool = False) -> None:
    """Load a checkpoint into a state dict, in place; all processes call this, with the same names.

    Tensors are written to: each process reads the stored parts that overlap its own. Objects with `load_state_dict` get
    their state, other values are replaced.

    Args:
        state_dict: names and values, which may be nested dicts, and objects with `state_dict`.
        checkpoint_id: a folder.
        storage_reader: what reads; files of the folder if None.
        planner: which process reads what.
        process_group: the processes; all if None.
        no_dist: whether this process loads alone.

    Raises:
        CheckpointException: something failed at a rank: the checkpoint lacks a name, a tensor has another shape.
        RuntimeError: neither a folder nor a reader.
    """
    alone = _is_alone(no_dist, 3, "disabled, ")
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    keys = sorted(state_dict)
    states = {key: state_dict[key].state_dict() if isinstance(state_dict[key], Stateful) else state_dict[key]
              for key in keys}
    _load_state_dict(states, reader, process_group, no_dist=alone, planner=planner)
    for key in keys:
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _read_metadata(reader: StorageReader, rank: int) -> tuple[Metadata, bool]:
    """The metadata of all processes; if there are none, those of this one, and False.

    Raises:
        AssertionError: there are neither.
    """
    try:
        return reader.read_metadata(), True
    except Exception as error:
        texts = [f"metadata is None; global metadata read failed: {error}"]
    if "kwargs" in inspect.signature(reader.read_metadata).parameters:
        try:
            return reader.read_metadata(rank=rank), False
        except Exception as error:
            texts.append(f"rank local metadata read failed: {error}")
    raise AssertionError("; ".join(texts))


def _load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader,
                     process_group: ProcessGroup | None = None, coordinator_rank: int = 0, no_dist: bool = False,
                     planner: LoadPlanner | None = None) -> None:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    chosen = planner or DefaultLoadPlanner()

    def plan_locally() -> LoadPlan:
        metadata, of_all = _read_metadata(storage_reader, ranks.rank)
        chosen.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        if "kwargs" in inspect.signature(storage_reader.set_up_storage_reader).parameters:
            storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator, rank=ranks.rank,
                                                 use_collectives=of_all)
        else:
            storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return storage_reader.prepare_local_plan(chosen.create_local_plan())

    def plan_globally(plans: list[LoadPlan]) -> list[LoadPlan]:
        return storage_reader.prepare_global_plan(chosen.create_global_plan(plans))

    plan = ranks.reduce_scatter("plan", plan_locally, plan_globally)
    ranks.all_gather("read", lambda: storage_reader.read_data(chosen.finish_plan(plan), chosen).wait())


def _load_state_dict_from_keys(keys: set[str] | str | None = None, *, checkpoint_id: _PathLike | None = None,
                               storage_reader: StorageReader | None = None,
                               process_group: ProcessGroup | None = None) -> dict[str, Any]:
    """A state dict of some names of a checkpoint, or of all; each process gets it whole.

    Args:
        keys: names, or beginnings of paths; all if None.
        checkpoint_id: a folder.
        storage_reader: what reads; files of the folder if None.
        process_group: the processes; all if None.
    """
    alone = _is_alone(False, 2, "")
    loaded: dict[str, Any] = {}
    _load_state_dict(loaded, _storage_setup(storage_reader, checkpoint_id, reader=True), process_group,
                     no_dist=alone, planner=_EmptyStateDictLoadPlanner({keys} if isinstance(keys, str) else keys))
    return loaded
