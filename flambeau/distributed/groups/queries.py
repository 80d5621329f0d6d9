"""What programs ask about process groups: ranks, sizes, backends, names."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

from ...c10d.process_group import ProcessGroup
from ...c10d.stores import Store
from ...c10d.world import GroupMember, default_group, world
from ..backends import Backend

__all__ = ["get_backend", "get_backend_config", "get_global_rank", "get_group_rank", "get_node_local_rank",
           "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "is_available", "is_initialized",
           "is_torchelastic_launched"]


def is_available() -> bool:
    """Whether there are process groups: True.

    >>> import flambeau as torch
    >>> torch.distributed.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether there is a default process group.

    >>> import flambeau as torch
    >>> torch.distributed.is_initialized()
    False
    """
    return world.default is not None


def is_torchelastic_launched() -> bool:
    """Whether `torchrun` started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank within this machine, of the environment variable LOCAL_RANK.

    Args:
        fallback_rank: the rank if the variable is not set.

    Raises:
        RuntimeError: the variable is not set, and there is no fallback.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
                       "`get_node_local_rank` to work, assuming you are not running in a multi-device context and want "
                       "the code to run locally instead.")


# ----- queries -----------------------------------------------------------------------------


_get_default_group = default_group


def _get_default_store() -> Store:
    default_group()
    return world.stores[world.default]


def _rank_not_in_group(group: Any) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(operation: str) -> None:
    rank = -1 if world.default is None else world.default.rank()
    warnings.warn(f"Running {operation} on global rank {rank} which does not belong to the given group.", stacklevel=3)


def _group_or_default_group(group: ProcessGroup | None = None) -> ProcessGroup:
    return default_group() if group is None else group


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a process.

    Args:
        group: the group.
        global_rank: the process's rank in the default group.

    Raises:
        ValueError: the process is not in the group, or the group is not known (PyTorch's texts).
    """
    if group is world.default:
        return global_rank
    if group not in world.ranks:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    ranks = world.ranks[group]
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the default group of a process.

    Args:
        group: a group.
        group_rank: the process's rank in it.

    Raises:
        ValueError: the group has no such rank, or is not known (PyTorch's texts).
    """
    if group is world.default:
        return group_rank
    if group not in world.ranks:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    for rank, own in world.ranks[group].items():
        if own == group_rank:
            return rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks in the default group of a group's processes, in the group's order.

    Args:
        group: the group; the default one if None.
    """
    return list(world.ranks[_group_or_default_group(group)])


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's rank in a group; -1 if it is not in it.

    Args:
        group: the group; the default one if None.

    Raises:
        ValueError: there is no default process group.
    """
    if _rank_not_in_group(group):
        return -1
    rank = default_group().rank()
    return rank if group is None or group is world.default else get_group_rank(group, rank)


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of a group's processes; -1 if this process is not in it.

    Args:
        group: the group; the default one if None.

    Raises:
        ValueError: there is no default process group.
    """
    return -1 if _rank_not_in_group(group) else _get_group_size(group)


def _get_group_size(group: ProcessGroup | None) -> int:
    return _group_or_default_group(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of a group's backend.

    Args:
        group: the group; the default one if None.

    Raises:
        ValueError: there is no default process group, or this process is not in the group.
    """
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return Backend(world.backends[pg])


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backends of a group, by type of device.

    Args:
        group: the group; the default one if None.
    """
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return str(world.configs[pg])


def get_pg_count() -> int:
    """The number of names that were given to groups."""
    return world.count


def _device_capability(group: ProcessGroup | None = None) -> list[str]:
    return [device.type for device in _group_or_default_group(group)._device_types]


def _get_pg_default_device(group: ProcessGroup | None = None) -> Any:
    from ...devices import device

    return device("cpu")


def _get_object_coll_device(group: ProcessGroup | None = None) -> str:
    return "cpu"


# ----- names -------------------------------------------------------------------------------


def _hash_ranks_to_str(ranks: Sequence[int]) -> str:
    digest = hashlib.sha1("_".join(map(str, ranks)).encode(), usedforsecurity=False)
    digest.update(f"_{len(world.names)}".encode())
    return digest.hexdigest()


def _process_group_name(ranks: Sequence[int], use_hashed_name: bool) -> str:
    name = _hash_ranks_to_str(ranks) if use_hashed_name else str(world.count)
    world.count += 1
    return name


def _get_process_group_name(pg: ProcessGroup) -> str:
    return world.names.get(pg, "None")


def _get_process_group_store(pg: ProcessGroup) -> Store:
    return world.stores[pg]


def _get_group_tag(pg: ProcessGroup) -> str:
    return world.tags[pg].removeprefix("user:")


def _resolve_process_group(group_name: str) -> ProcessGroup:
    for pg, name in world.names.items():
        if name == group_name:
            return cast(ProcessGroup, pg)
    raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")


def _find_pg_by_ranks_and_tag(tag: str, ranks: Sequence[int]) -> ProcessGroup | None:
    if tag and not tag.startswith(("ptd:", "user:")):
        tag = f"user:{tag}"
    for pg, own in world.tags.items():
        if own == tag and list(world.ranks[pg]) == list(ranks):
            return cast(ProcessGroup, pg)
    return None


def _check_valid_timeout(timeout: Any) -> None:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _set_pg_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """Set how long the collectives of a group may take."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    if not isinstance(timeout, timedelta):
        raise AssertionError("timeout must be a timedelta")
    pg.set_timeout(timeout)
