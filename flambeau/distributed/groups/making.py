"""Process groups: the default one and groups of some of its processes, made and ended."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

from ...c10d.backend import DEFAULT_TIMEOUT
from ...c10d.mpi import uses_mpi
from ...c10d.process_group import ProcessGroup
from ...c10d.stores import HashStore, PrefixStore, Store
from ...c10d.transport.mpi_transport import launched_by_mpi
from ...c10d.transport.mpi_transport import world as mpi_world
from ...c10d.world import GroupMember, default_group, world
from ...switches import get_num_threads, set_num_threads
from ..backends import Backend
from ..rendezvous import rendezvous
from .backends import _make_group
from .queries import (
    _check_valid_timeout,
    _find_pg_by_ranks_and_tag,
    _process_group_name,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    is_initialized,
)

__all__ = ["destroy_process_group", "init_process_group", "new_group", "new_subgroups", "new_subgroups_by_enumeration"]


def _environment_of_mpi() -> tuple[int, int] | None:
    """The rank and size that a launcher of MPI gave, where no variables of PyTorch say otherwise."""
    if "RANK" in os.environ or not launched_by_mpi():
        return None
    communicator = mpi_world()
    rank, size = communicator.Get_rank(), communicator.Get_size()
    local = next((os.environ[each] for each in ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
                  if each in os.environ), str(rank))
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
    os.environ.setdefault("LOCAL_RANK", local)
    return rank, size


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None,
                       world_size: int = -1, rank: int = -1, store: Store | None = None, group_name: str = "",
                       pg_options: Any = None, device_id: Any = None, _ranks: Sequence[int] | None = None) -> None:
    """Make the default process group; all processes call this.

    Args:
        backend: "gloo" (sockets, or MPI where MPI's launcher started the processes), "mpi", or "cpu:gloo".
        init_method: how the processes find each other: "env://" (the default), "tcp://host:port" or "file:///path".
        timeout: how long a collective may take, 30 minutes if None.
        world_size: the number of processes, where `init_method` does not say it.
        rank: this process's number, where `init_method` does not say it.
        store: the store through which the processes find each other, instead of `init_method`.
        group_name: without effect.
        pg_options: options of the backend.
        device_id: the device of this process; the CPU.

    Raises:
        ValueError: there is a default process group, or something is missing to find the others (PyTorch's texts).
        RuntimeError: there is no such backend, or processes are missing.

    >>> import flambeau as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_rank(), dist.get_world_size(), dist.get_backend()
    (0, 1, 'gloo')
    >>> dist.destroy_process_group()
    """
    if world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    kind = getattr(device_id, "type", "cpu" if device_id is None else "an accelerator")
    if kind != "cpu":
        raise ValueError(f"device_id {device_id} does not match the current compilation's accelerator support: None. "
                         "Please use a different compiled version that supports your accelerator.")
    if backend is None:
        backend = Backend.UNDEFINED if device_id is None else Backend.default_device_backend_map[kind]
    backend = Backend(backend)
    timeout = DEFAULT_TIMEOUT if timeout is None else timeout
    _check_valid_timeout(timeout)
    name = _process_group_name(_ranks or [], use_hashed_name=bool(_ranks))
    if backend == Backend.MPI:
        if world_size != -1 or rank != -1:
            warnings.warn(f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they are "
                          "assigned by the MPI runtime.", stacklevel=2)
        mpi_world()
        _environment_of_mpi()
        store, rank, world_size = HashStore(), -1, -1
    elif store is None:
        found = _environment_of_mpi() if init_method is None else None
        if found is not None and "MASTER_ADDR" not in os.environ:
            store, (rank, world_size) = HashStore(), found
        else:
            store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
            store.set_timeout(timeout)
        store = PrefixStore("default_pg", store)
    pg = _make_group(world_size, rank, (), backend, store, name, timeout, pg_options, None, "default_pg")
    world.default, world.default_init_method = pg, init_method
    world.ranks[pg] = {i: i for i in range(pg.size())}
    sys.excepthook = _excepthook_of(pg.rank(), sys.excepthook)
    _divide_threads()
    if os.environ.get("TORCH_DIST_INIT_BARRIER") == "1":
        pg.barrier().wait()


def _divide_threads() -> None:
    """Divide this machine's cores between the processes on it, unless the environment says how many threads to use."""
    if any(name in os.environ for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")):
        return
    local = next((int(os.environ[name]) for name in ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                                     "MPI_LOCALNRANKS",
                                                     "SLURM_NTASKS_PER_NODE") if os.environ.get(name, "").isdigit()), 1)
    if local > 1:
        set_num_threads(max(1, get_num_threads() // local))


def _excepthook_of(rank: int, old: Any) -> Any:
    """A hook that begins each line of an uncaught exception's traceback with this process's rank."""
    def hook(*args: Any) -> None:
        stderr, sys.stderr = sys.stderr, io.StringIO()
        try:
            old(*args)
        finally:
            text, sys.stderr = sys.stderr.getvalue(), stderr
        stderr.write("\n".join(f"[rank{rank}]: {line}" if line else "" for line in text.split("\n")))
        stderr.flush()
        if uses_mpi(get_world_size() if is_initialized() else -1):
            mpi_world().Abort(1)  # MPI's end would wait for the other processes, which wait for this one

    while getattr(old, "of_rank", False):  # one prefix, also after a second initialisation
        old = old.before
    hook.of_rank, hook.before = True, old  # type: ignore[attr-defined]
    return hook


def new_group(ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
              pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
              device_id: Any = None, sort_ranks: bool = True) -> Any:
    """Make a group of some processes; all processes call this, in the same order.

    Args:
        ranks: their ranks in the default group; all if None.
        timeout: how long a collective may take.
        backend: the group's backend; the default group's if None.
        pg_options: options of the backend.
        use_local_synchronization: whether only its members call this.
        group_desc: a description.
        device_id: the device of this process; the CPU.
        sort_ranks: whether ranks in the group follow those in the default one.

    Returns:
        The group; `GroupMember.NON_GROUP_MEMBER` where this process is not in it.

    Raises:
        ValueError: ranks that the default group does not have, or the same one twice (PyTorch's texts).
    """
    return _new_group_with_tag(ranks, timeout, backend, pg_options, None, use_local_synchronization, group_desc,
                               sort_ranks)


def _new_group_with_tag(ranks: Sequence[int] | None = None, timeout: timedelta | None = None,
                        backend: str | None = None,
                        backend_options: Any = None, pg_tag: str | None = None, use_local_synchronization: bool = False,
                        group_desc: str | None = None, sort_ranks: bool = True) -> Any:
    default = default_group()
    rank, size = default.rank(), default.size()
    chosen = world.backends[default] if backend is None or backend == Backend.UNDEFINED else Backend(backend)
    if timeout is None:
        timeout = DEFAULT_TIMEOUT
    _check_valid_timeout(timeout)
    if use_local_synchronization:
        if chosen == Backend.MPI:
            raise ValueError("MPI backend doesn't support use_local_synchronization=True")
        if ranks is not None and rank not in ranks:
            return None
    if ranks is None:
        members = list(range(size))
    else:
        members = sorted(ranks) if sort_ranks else list(ranks)
        if len(set(members)) != len(members):
            raise ValueError(f"ranks list must not contain duplicate entries, got {list(ranks)}")
        if len(members) > size:
            raise ValueError("the new group's world size should be less or equal to the world size set by "
                             "init_process_group")
        for each in members:
            if each < 0 or each >= size:
                raise ValueError(f"Rank {each} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    name = _process_group_name(members, use_hashed_name=use_local_synchronization)
    if rank not in members:
        return GroupMember.NON_GROUP_MEMBER
    if pg_tag and (found := _find_pg_by_ranks_and_tag(pg_tag, members)) is not None:
        return found
    pg = _make_group(len(members), members.index(rank), members, chosen, _default_store_beside_groups(), name, timeout,
                     backend_options, pg_tag, group_desc)
    world.ranks[pg] = {each: i for i, each in enumerate(members)}
    return pg


def _default_store_beside_groups() -> Store:
    """The store of the default group without its prefix, below which groups have theirs."""
    store = world.stores[world.default]
    return store.underlying_store if isinstance(store, PrefixStore) else store


def _find_or_create_pg_by_ranks_and_tag(tag: str, ranks: Sequence[int], stride: int) -> ProcessGroup:
    """The group with a tag of those `stride` ranks among which this process is; it is made if there is none."""
    if len(ranks) % stride:
        raise ValueError(f"The provided group_size={len(ranks)} does not evenly divide the given stride={stride}")
    rank = get_rank()
    own = next((sorted(ranks[i:i + stride]) for i in range(0, len(ranks), stride) if rank in ranks[i:i + stride]), None)
    if own is None:
        raise AssertionError("rankset doesn't include the current node")
    found = _find_pg_by_ranks_and_tag(tag, own)
    if found is not None:
        return found
    if not tag:
        raise ValueError("Cannot automatically create PG with empty tag")
    return cast(ProcessGroup, _new_group_with_tag(own, pg_tag=tag))


def new_subgroups(group_size: int | None = None, group: ProcessGroup | None = None, timeout: timedelta | None = None,
                  backend: str | None = None, pg_options: Any = None,
                  group_desc: str | None = None) -> tuple[Any, list[Any]]:
    """Divide a group into groups of consecutive ranks.

    Args:
        group_size: the number of processes of each.
        group: the group; the default one if None.
        timeout, backend, pg_options, group_desc: as `new_group`.

    Returns:
        The group of this process, and all of them.

    Raises:
        ValueError: the size does not divide that of the group (PyTorch's texts).
    """
    if group_size is None:
        raise ValueError("Default group size only takes effect when CUDA is available."
                         "If your subgroup using a backend that does not depend on CUDA,"
                         "please pass in 'group_size' correctly.")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group)
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    ranks = get_process_group_ranks(group)
    return new_subgroups_by_enumeration([ranks[i:i + group_size] for i in range(0, size, group_size)], timeout, backend,
                                        pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None,
                                 backend: str | None = None, pg_options: Any = None,
                                 group_desc: str | None = None) -> tuple[Any, list[Any]]:
    """Make several groups that have no process in common.

    Args:
        ranks_per_subgroup_list: the ranks of each.
        timeout, backend, pg_options, group_desc: as `new_group`.

    Returns:
        The group of this process, None if it is in none, and all of them.

    Raises:
        ValueError: there are none, or a process is in two of them (PyTorch's texts).
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    groups: list[Any] = []
    own: Any = None
    of_rank: dict[int, Sequence[int]] = {}
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(made)
        for rank in ranks:
            if rank in of_rank:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {of_rank[rank]} and {ranks}")
            of_rank[rank] = ranks
            if rank == get_rank():
                own = made
    return own, groups


def split_group(parent_pg: ProcessGroup | None = None, split_ranks: Any = None, timeout: timedelta | None = None,
                pg_options: Any = None, group_desc: str | None = None) -> Any:
    """Refuse: backends of the CPU do not divide groups without new connections.

    Raises:
        RuntimeError: always (PyTorch's text).
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    default_group()
    raise RuntimeError("No device associated with the default pg, not safe to split any process groups")


def destroy_process_group(group: Any = None) -> None:
    """End a group; with the default one, all of them.

    Args:
        group: the group; the default one if None.

    Raises:
        AssertionError: there is no default group.
        ValueError: the group is not known.
    """
    if group is not None and group == GroupMember.NON_GROUP_MEMBER:
        return
    pg = world.default if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg not in world.backends:
        raise ValueError("Invalid process group specified")
    ended = list(world.backends) if pg is world.default else [pg]
    for each in reversed(ended):
        each.shutdown()
        world.forget(each)
    if pg is world.default:
        world.clear()


_abort_process_group = destroy_process_group
