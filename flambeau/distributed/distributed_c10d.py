"""`torch.distributed.distributed_c10d`: process groups and collectives under one name."""

from __future__ import annotations

from typing import Any, NewType

from ..c10d.options import *  # noqa: F403
from ..c10d.process_group import ProcessGroup
from ..c10d.reduce_op import ReduceOp
from ..c10d.stores import HashStore, PrefixStore, Store, TCPStore
from ..c10d.work import Work
from ..c10d.world import GroupMember, group
from ..c10d.world import world as _world
from .backends import *  # noqa: F403
from .coalescing import _coalescing_manager, _CoalescingManager
from .collective_checks import *  # noqa: F403
from .collective_checks import (
    _canonicalize_group_rank,
    _check_single_tensor,
    _check_tensor_list,
    _ensure_all_tensors_same_dtype,
)
from .collectives import *  # noqa: F403
from .collectives import _all_gather_base, _reduce_scatter_base
from .constants import default_pg_nccl_timeout, default_pg_timeout
from .groups.backends import _create_process_group_wrapper
from .groups.making import *  # noqa: F403
from .groups.making import _abort_process_group, _find_or_create_pg_by_ranks_and_tag, _new_group_with_tag, split_group
from .groups.queries import *  # noqa: F403
from .groups.queries import (
    _check_valid_timeout,
    _device_capability,
    _find_pg_by_ranks_and_tag,
    _get_default_group,
    _get_default_store,
    _get_group_size,
    _get_group_tag,
    _get_object_coll_device,
    _get_pg_default_device,
    _get_process_group_name,
    _get_process_group_store,
    _group_or_default_group,
    _process_group_name,
    _rank_not_in_group,
    _resolve_process_group,
    _set_pg_timeout,
    _warn_not_in_group,
)
from .groups.store_barrier import STORE_BASED_BARRIER_PREFIX, _store_based_barrier
from .object_collectives import *  # noqa: F403
from .object_collectives import _object_to_tensor, _tensor_to_object
from .point_to_point import *  # noqa: F403
from .point_to_point import _check_op
from .rendezvous import register_rendezvous_handler, rendezvous

reduce_op = ReduceOp
#: the name of a process group
GroupName = NewType("GroupName", str)


def _get_global_rank(pg: Any, rank: int) -> int:
    return get_global_rank(pg, rank)  # noqa: F405


def __getattr__(name: str) -> Any:
    if name == "_default_pg_init_method":
        return _world.default_init_method
    if name in ("_pg_map", "_pg_names", "_pg_group_ranks", "_pg_backend_config", "_group_count"):
        return getattr(_world, name[1:])
    if name == "_pg_to_tag":
        return _world.tags
    if name == "_GLOO_AVAILABLE":
        return True
    if name in ("_NCCL_AVAILABLE", "_UCC_AVAILABLE", "_XCCL_AVAILABLE"):
        return False
    if name == "_MPI_AVAILABLE":
        return is_mpi_available()  # noqa: F405
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
