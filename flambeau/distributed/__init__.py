"""`torch.distributed`: processes that compute together. What it is made of is in `flambeau.c10d`.

Modules of accelerators and remote calls are left out: their names exist, and refuse (`names`).
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .. import config
from ..c10d.backend import Backend as _Backend
from ..c10d.errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ..c10d.gloo.process_group import ProcessGroupGloo
from ..c10d.options import *  # noqa: F403
from ..c10d.process_group import ProcessGroup
from ..c10d.reduce_op import ReduceOp
from ..c10d.reduce_op import premultiplied_sum as _make_nccl_premul_sum
from ..c10d.stores import (
    FileStore,
    HashStore,
    PrefixStore,
    Store,
    TCPStore,
    _ControlCollectives,
    _StoreCollectives,
)
from ..c10d.work import Work
from ..c10d.world import GroupMember, group
from . import constants, distributed_c10d, rendezvous
from .backends import *  # noqa: F403
from .coalescing import _coalescing_manager, _CoalescingManager
from .collective_checks import *  # noqa: F403
from .collectives import *  # noqa: F403
from .collectives import _all_gather_base, _reduce_scatter_base
from .constants import default_pg_timeout
from .debug_level import *  # noqa: F403
from .groups.backends import _create_process_group_wrapper
from .groups.making import *  # noqa: F403
from .groups.making import split_group
from .groups.queries import *  # noqa: F403
from .groups.queries import _get_default_group, _get_process_group_name, _rank_not_in_group
from .object_collectives import *  # noqa: F403
from .point_to_point import *  # noqa: F403
from .rendezvous import register_rendezvous_handler

rendezvous = rendezvous.rendezvous  # type: ignore[assignment]  # the function, as in PyTorch
reduce_op = ReduceOp
_Work = Work


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Stop one process in the debugger while the others wait.

    Args:
        rank: the process that stops.
        skip: without effect.
        timeout_s: seconds that the others wait.
    """
    if get_rank() == rank:  # noqa: F405
        import pdb

        pdb.Pdb().set_trace(sys._getframe().f_back)
    barrier()  # noqa: F405


#: names that their modules define, which are imported when they are first used
_DEFINED_IN = dict.fromkeys((
    "GradBucket", "Reducer", "_DEFAULT_FIRST_BUCKET_BYTES",
    "BuiltinCommHookType", "_broadcast_coalesced", "_compute_bucket_assignment_by_size",
    "_register_builtin_comm_hook", "_register_comm_hook", "_verify_params_across_processes"), "reducers")
_DEFINED_IN["_remote_device"] = "groups.remote_device"
_DEFINED_IN |= dict.fromkeys(("DeviceMesh", "init_device_mesh"), "device_mesh")
#: submodules that are imported when they are first used
_SUBMODULES = frozenset({"_composable", "_functional_collectives", "_state_dict_utils", "_symmetric_memory", "_tensor",
                         "algorithms", "checkpoint", "collective_utils", "device_mesh", "elastic", "fsdp", "launch",
                         "launcher", "names", "nn", "optim", "pipelining", "run", "tensor", "utils"})

#: submodules that are in a package here
_ELSEWHERE = {"_checkpointable": "checkpoint.checkpointable", "remote_device": "groups.remote_device"}


def __getattr__(name: str) -> Any:
    if name in _DEFINED_IN:
        return getattr(importlib.import_module(f"{__package__}.{_DEFINED_IN[name]}"), name)
    if name in _SUBMODULES:
        return importlib.import_module(f"{__package__}.{name}")
    if name in _ELSEWHERE:
        return importlib.import_module(f"{__package__}.{_ELSEWHERE[name]}")
    from .names import MODULES

    if name in MODULES:
        return MODULES[name]
    raise AttributeError(f"module '{config.module_name}.distributed' has no attribute '{name}'")
