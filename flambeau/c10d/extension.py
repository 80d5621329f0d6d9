"""`torch._C._distributed_c10d`: the names that PyTorch's extension has for what this package defines."""

from __future__ import annotations

from .backend import Backend, BackendOptions
from .buckets import GradBucket
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError
from .fake import FakeProcessGroup
from .gloo.process_group import ProcessGroupGloo
from .options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from .process_group import BackendType, ProcessGroup
from .process_group_wrapper import _ProcessGroupWrapper
from .reduce_op import ReduceOp
from .reducer import Reducer
from .stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from .work import Work
from .work import create_work_from_future as _create_work_from_future

__all__ = ["AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "Backend",
           "BackendOptions", "BackendType", "BarrierOptions", "BroadcastOptions", "DistBackendError", "DistError",
           "DistNetworkError", "DistStoreError", "FakeProcessGroup",
           "FileStore", "GatherOptions", "GradBucket", "HashStore", "PrefixStore",
           "ProcessGroup", "ProcessGroupGloo", "ReduceOp", "ReduceOptions", "ReduceScatterOptions", "Reducer",
           "ScatterOptions", "Store", "TCPStore", "Work", "_ProcessGroupWrapper", "_create_work_from_future"]
