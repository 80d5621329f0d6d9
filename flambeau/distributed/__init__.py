"""`torch.distributed` where there are no process groups: it says so, and refuses what needs one.

`is_available()` is False, as in a build of PyTorch without distributed training.
"""

from __future__ import annotations

import enum
import os
import sys
from typing import Any

from .. import config
from ..environment.left_out import refusing_class, refusing_function
from .names import REASON

_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


def is_available() -> bool:
    """Whether there are process groups: False.

    >>> import flambeau as torch
    >>> torch.distributed.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Whether there is a default process group: False.

    >>> import flambeau as torch
    >>> torch.distributed.is_initialized()
    False
    """
    return False


is_mpi_available = is_nccl_available = is_gloo_available = is_ucc_available = is_xccl_available = is_available


def is_torchelastic_launched() -> bool:
    """Whether PyTorch's launcher started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank within this machine, of the environment variable LOCAL_RANK.

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


class DistError(RuntimeError):
    """An error of a process group."""


class DistBackendError(DistError):
    """An error of a backend."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of a store."""


class QueueEmptyError(DistStoreError):
    """An empty queue of a store."""


class _RedOpType(enum.IntEnum):
    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class ReduceOp:
    """The operation of a reduction over processes."""

    RedOpType = _RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = (_RedOpType(i) for i in range(5))
    BAND, BOR, BXOR, PREMUL_SUM = (_RedOpType(i) for i in range(5, 9))


reduce_op = ReduceOp


class Backend(str):
    """The name of a backend, in lower case."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI)
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}  # noqa: RUF012

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class _GroupMeta(type):
    @property
    def WORLD(cls) -> None:  # the default group: none
        return None


class group(metaclass=_GroupMeta):
    """The default process group, of which there is none."""


class GroupMember(metaclass=_GroupMeta):
    """The default process group, of which there is none, and the mark of a process outside of a group."""

    NON_GROUP_MEMBER = -100


def _uninitialized(name: str) -> Any:
    """A function of process groups, which fails as in PyTorch while there is none."""
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise ValueError(_NOT_INITIALIZED)

    fail.__name__ = fail.__qualname__ = name
    fail.__doc__ = "Needs a process group, of which there is none."
    return fail


_COLLECTIVES = (
    "all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_reduce "
    "all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv broadcast "
    "broadcast_object_list gather gather_object get_backend get_backend_config get_global_rank "
    "get_group_rank get_process_group_ranks get_rank get_world_size irecv isend monitored_barrier new_group "
    "new_subgroups recv recv_object_list reduce reduce_scatter reduce_scatter_tensor scatter "
    "scatter_object_list send send_object_list split_group _get_default_group")
for _name in _COLLECTIVES.split():
    globals()[_name] = _uninitialized(_name)
for _name in ("init_process_group", "init_device_mesh", "rendezvous", "destroy_process_group"):
    globals()[_name] = refusing_function(f"torch.distributed.{_name}", REASON)
for _name in ("FileStore", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "ProcessGroupGloo", "Reducer", "Store",
              "TCPStore", "Work", "GradBucket"):
    globals()[_name] = refusing_class(f"torch.distributed.{_name}", REASON)


def _rank_not_in_group(group: Any) -> bool:
    return group == GroupMember.NON_GROUP_MEMBER


_pg_map: dict[Any, Any] = {}
distributed_c10d = sys.modules[__name__]  # PyTorch's submodule, which holds these names


def __getattr__(name: str) -> Any:
    from .names import MODULES

    if name in MODULES:
        return MODULES[name]
    if name == "DeviceMesh":
        return MODULES["device_mesh"].DeviceMesh
    raise AttributeError(f"module '{config.module_name}.distributed' has no attribute '{name}'")
