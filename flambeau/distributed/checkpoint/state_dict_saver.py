"""`save` and `async_save`: all processes write their parts of a state dict."""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ... import distributed as dist
from ...c10d.process_group import ProcessGroup
from ._async_process_executor import info_for_start, save_in_process
from ._storage_utils import _storage_setup
from .default_planner import DefaultSavePlanner
from .metadata import STATE_DICT_TYPE, Metadata
from .planner import SavePlan, SavePlanner
from .staging import AsyncStager, DefaultStager, StagingOptions
from .stateful import Stateful
from .storage import StorageWriter, WriteResult
from .utils import _api_bc_check, _DistWrapper

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]

_PathLike = str | os.PathLike[str]


class AsyncCheckpointerType(Enum):
    """What `async_save` writes in."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """Futures of `async_save`: the state dict is copied; the checkpoint is written."""

    staging_completion: Future[None]
    upload_completion: Future[Any]


def save_state_dict(state_dict: STATE_DICT_TYPE, storage_writer: StorageWriter,
                    process_group: ProcessGroup | None = None, coordinator_rank: int = 0, no_dist: bool = False,
                    planner: SavePlanner | None = None) -> Metadata:
    """Save a state dict without calls of `state_dict`; `save` takes its place.

    Args:
        state_dict: names and values.
        storage_writer: what writes.
        process_group: the processes; all if None.
        coordinator_rank: which of them plans.
        no_dist: whether this process saves alone.
        planner: which process writes what.
    """
    warnings.warn("`save_state_dict` is deprecated and will be removed in future versions.Please use `save` instead.",
                  FutureWarning, stacklevel=2)
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


@_api_bc_check
def save(state_dict: STATE_DICT_TYPE, *, checkpoint_id: _PathLike | None = None,
         storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
         process_group: ProcessGroup | None = None, no_dist: bool = False, use_collectives: bool = True) -> Metadata:
    """Save a state dict; all processes call this.

    Each process writes its parts of distributed tensors; what several have is written by one of them.

    Args:
        state_dict: names and values, which may be nested dicts, and objects with `state_dict`.
        checkpoint_id: a folder.
        storage_writer: what writes; files in the folder if None.
        planner: which process writes what.
        process_group: the processes; all if None.
        no_dist: whether this process saves alone.
        use_collectives: False makes each process write metadata of its own, without talking to others.

    Returns:
        The checkpoint's metadata.

    Raises:
        CheckpointException: something failed at a rank.
        RuntimeError: neither a folder nor a writer.

    >>> import tempfile, warnings
    >>> import flambeau as torch
    >>> import flambeau.distributed.checkpoint as dcp
    >>> model, restored = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
    ...     metadata = dcp.save({"model": model, "step": 3}, checkpoint_id=folder)
    ...     state = {"model": restored, "step": 0}
    ...     dcp.load(state, checkpoint_id=folder)
    >>> state["step"], torch.equal(model.weight, restored.weight)
    (3, True)
    """
    no_dist = no_dist or not dist.is_initialized()
    if no_dist:
        warnings.warn("torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to save in "
                      "a single process.", stacklevel=3)
    writer = _storage_setup(storage_writer, checkpoint_id)
    return _save_state_dict(_stateful_to_state_dict(state_dict), writer, process_group, no_dist=no_dist,
                            planner=planner, use_collectives=use_collectives)


class _Background:
    """A thread of saves, one after another, and the group whose collectives it runs beside those of the program."""

    def __init__(self, group: ProcessGroup | None) -> None:
        self.group, self.executor = group, ThreadPoolExecutor(1, "AsyncCheckpointExecutor")


#: process group -> what saves of its processes run in; their order is the same at all of them
_backgrounds: weakref.WeakKeyDictionary[Any, _Background] = weakref.WeakKeyDictionary()


def _background(process_group: ProcessGroup | None, alone: bool) -> _Background:
    if alone or not dist.is_initialized():
        return _Background(process_group)
    group = process_group or dist._get_default_group()
    if group not in _backgrounds:
        _backgrounds[group] = _Background(dist.new_group(
            dist.get_process_group_ranks(group), use_local_synchronization=True, backend="gloo",
            group_desc="checkpoint"))
    return _backgrounds[group]


def async_save(state_dict: STATE_DICT_TYPE, *, checkpoint_id: _PathLike | None = None,
               storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
               process_group: ProcessGroup | None = None,
               async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
               async_stager: AsyncStager | None = None, no_dist: bool = False,
               use_collectives: bool = True) -> Future[Any] | AsyncSaveResponse:
    """Copy a state dict, and save the copy in a thread or a process, while the program goes on.

    Args:
        state_dict: as for `save`.
        checkpoint_id: a folder.
        storage_writer: what writes; files in the folder if None.
        planner: which process writes what.
        process_group: the processes; all if None. Threads and processes use a group of their own of the same ranks.
        async_checkpointer_type: `AsyncCheckpointerType.PROCESS` writes in a process that the first such save starts;
            as with all that `multiprocessing` starts by "spawn", the program's main part must be guarded.
        async_stager: what copies.
        no_dist: whether this process saves alone.
        use_collectives: as for `save`.

    Returns:
        A future of the metadata; two futures if `async_stager` copies in the background, too.
    """
    own_stager = None
    if async_stager is None and isinstance(storage_writer, AsyncStager):
        async_stager = storage_writer
    if async_stager is None:
        async_stager = own_stager = DefaultStager(StagingOptions(False, False, False, False))
    with contextlib.ExitStack() as on_error:
        if own_stager is not None:
            on_error.callback(own_stager.close)
        staged = async_stager.stage(_stateful_to_state_dict(state_dict))
        elsewhere = async_checkpointer_type is AsyncCheckpointerType.PROCESS
        info = info_for_start(process_group) if elsewhere else None
        background = _background(process_group, no_dist or not use_collectives or elsewhere)

        def write() -> Metadata:
            copied = staged.result() if isinstance(staged, Future) else staged
            if elsewhere:
                return save_in_process(save, copied, info, checkpoint_id, storage_writer, planner, no_dist,
                                       use_collectives)
            return save(copied, checkpoint_id=checkpoint_id, storage_writer=storage_writer, planner=planner,
                        process_group=background.group, no_dist=no_dist, use_collectives=use_collectives)

        written = background.executor.submit(write)
        if own_stager is not None:
            written.add_done_callback(lambda _: own_stager.close())
        on_error.pop_all()
    if not isinstance(staged, Future):
        if async_stager.should_synchronize_after_execute:
            async_stager.synchronize_staging()
        return written
    copied: Future[None] = Future()

    def note(done: Future[Any]) -> None:
        error = done.exception()
        if error is None:
            copied.set_result(None)
        else:
            copied.set_exception(error)

    staged.add_done_callback(note)
    return AsyncSaveResponse(copied, written)


def _stateful_to_state_dict(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    """A state dict with the states of its objects in place of them."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def _save_state_dict(state_dict: STATE_DICT_TYPE, storage_writer: StorageWriter,
                     process_group: ProcessGroup | None = None, coordinator_rank: int = 0, no_dist: bool = False,
                     planner: SavePlanner | None = None, use_collectives: bool = True) -> Metadata:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    chosen = planner or DefaultSavePlanner()
    metadata: Metadata | None = None

    def plan_locally() -> SavePlan:
        if "storage_meta" in inspect.signature(chosen.set_up_planner).parameters:
            chosen.set_up_planner(state_dict=state_dict, storage_meta=storage_writer.storage_meta(),
                                  is_coordinator=ranks.is_coordinator)
        else:
            warnings.warn("The function definition for SavePlanner.set_up_planner has been updated to include the "
                          "storage_meta argument. Please update your implementation to include this parameter.",
                          stacklevel=2)
            chosen.set_up_planner(state_dict, ranks.is_coordinator)  # type: ignore[arg-type]
        if "kwargs" in inspect.signature(storage_writer.set_up_storage_writer).parameters:
            storage_writer.set_up_storage_writer(ranks.is_coordinator, rank=ranks.rank, use_collectives=use_collectives)
        else:
            storage_writer.set_up_storage_writer(ranks.is_coordinator)
        return storage_writer.prepare_local_plan(chosen.create_local_plan())

    def plan_globally(plans: list[SavePlan]) -> list[SavePlan]:
        nonlocal metadata
        plans, metadata = chosen.create_global_plan(plans)
        return storage_writer.prepare_global_plan(plans)

    def write() -> list[WriteResult]:
        return storage_writer.write_data(chosen.finish_plan(plan), chosen).wait()

    def finish(results: list[list[WriteResult]]) -> Metadata:
        assert metadata is not None
        storage_writer.finish(metadata=metadata, results=results)
        return metadata

    if use_collectives:
        plan = ranks.reduce_scatter("plan", plan_locally, plan_globally)
        return ranks.all_reduce("write", write, finish)
    [plan] = plan_globally([plan_locally()])
    written = finish([write()])
    ranks.barrier()
    return written
