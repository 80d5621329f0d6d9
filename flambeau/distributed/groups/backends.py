"""Backends of process groups, by name, and groups made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ...c10d.gloo.process_group import ProcessGroupGloo
from ...c10d.mpi import ProcessGroupMPI, uses_mpi
from ...c10d.process_group import ProcessGroup
from ...c10d.process_group_wrapper import _ProcessGroupWrapper
from ...c10d.stores import PrefixStore, Store
from ...c10d.world import world
from ..backends import Backend, BackendConfig
from ..constants import default_pg_timeout
from ..debug_level import DebugLevel, get_debug_level

_MASTER_TAG = 17  # of the MPI groups that hold all processes


def _make_backend(name: str, store: Store, rank: int, size: int, ranks: Sequence[int], timeout: timedelta,
                  options: Any) -> Any:
    """A backend of a group.

    Raises:
        RuntimeError: there is no such backend here (PyTorch's texts).
    """
    if name == Backend.GLOO:
        tag = int(hashlib.sha1(f"{ranks}{world.count}".encode(), usedforsecurity=False).hexdigest()[:4], 16)
        chosen = options if isinstance(options, ProcessGroupGloo.Options) else timeout
        if uses_mpi(_global_size(size, ranks)):
            from ...c10d.transport.mpi_transport import MPITransport

            return ProcessGroupGloo(store, rank, size, chosen, MPITransport(list(ranks) or list(range(size)), tag))
        return ProcessGroupGloo(store, rank, size, chosen)
    if name == Backend.MPI:
        return ProcessGroupMPI(store, list(ranks) or None, timeout, _MASTER_TAG + world.count)
    if name in (Backend.NCCL, Backend.UCC, Backend.XCCL):
        raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
    creator, extended = Backend._plugins.get(name.upper(), (None, False))
    assert creator is not None, f"Unknown backend type {name}"
    if not extended:
        return creator(store, rank, size, timeout)
    described = _DistributedBackendOptions()
    described.store, described.group_rank, described.group_size, described.timeout = store, rank, size, timeout
    described.global_ranks_in_group = list(ranks)
    return creator(described, options)


def _global_size(size: int, ranks: Sequence[int]) -> int:
    return size if world.default is None else world.default.size()


def _compared(backend: Any, kind: str, name: str, store: Store, timeout: timedelta) -> Any:
    """A backend of a group; its collectives are compared between the processes under TORCH_DISTRIBUTED_DEBUG=DETAIL."""
    known = kind == Backend.GLOO or kind.upper() in Backend._plugins
    if isinstance(backend, ProcessGroup) or not known or get_debug_level() != DebugLevel.DETAIL:
        return backend
    return _create_process_group_wrapper(backend, name, store, backend.rank(), backend.size(), timeout)


def _create_process_group_wrapper(wrapped_pg: Any, store_prefix: str, store: Store, rank: int, world_size: int,
                                  timeout: timedelta = default_pg_timeout) -> _ProcessGroupWrapper:
    """A backend whose collectives are compared between the processes before they run.

    Args:
        wrapped_pg: carries the collectives out.
        store_prefix: names what is written into the store.
        store: the store through which the processes find each other.
        rank, world_size: this process's number, and how many there are.
        timeout: how long the processes wait for each other.
    """
    if isinstance(timeout, (int, float)):
        timeout = timedelta(seconds=timeout)
    own = PrefixStore(f"pg_wrapper:{store_prefix}", store)
    return _ProcessGroupWrapper(wrapped_pg, ProcessGroupGloo(own, rank, world_size, timeout))


class _DistributedBackendOptions:
    """What a backend of a program is made of."""

    store: Any = None
    group_rank = group_size = -1
    timeout: Any = None
    group_id = ""
    global_ranks_in_group: Sequence[int] = ()


def _make_group(size: int, rank: int, ranks: Sequence[int], backend: str, store: Store, name: str, timeout: timedelta,
                options: Any, tag: str | None, description: str | None) -> ProcessGroup:
    """A registered group; `ranks` are empty for the default one."""
    if name in world.names.values():
        raise ValueError(f"The specified group name {name} has already been created, please use a different group name")
    config = BackendConfig(backend)
    prefixed = PrefixStore(f"{name}/", store)
    makers = config.get_device_backend_map()
    made: dict[str, Any] = {}
    for kind, each in makers.items():
        if each not in made and not (kind == "cuda" and each == Backend.NCCL and "cpu" in makers and len(makers) > 1):
            own = PrefixStore(f"{kind}/", prefixed)
            plain = _make_backend(each, own, rank, size, ranks, timeout, options)
            made[each] = _compared(plain, each, name, own, timeout)
    first = next(iter(made.values()))
    if isinstance(first, ProcessGroup):  # a program's own process group
        pg = first
    else:
        if rank < 0:  # MPI has decided
            rank, size = first.rank(), first.size()
        pg = ProcessGroup(prefixed, rank, size)
        for kind, each in makers.items():
            if each in made:
                pg._register_backend(kind, Backend.backend_type_map.get(each, ProcessGroup.CUSTOM), made[each])
    pg._set_group_name(name)
    pg._set_group_desc(description or "undefined")
    world.backends[pg], world.stores[pg], world.names[pg], world.configs[pg] = backend, prefixed, name, str(config)
    world.tags[pg] = "" if not ranks else f"user:{tag}" if tag else f"ptd:{name}"
    return pg
