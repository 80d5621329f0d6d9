"""`torch.distributed.nn`: collectives through which gradients flow."""

from __future__ import annotations

from ...environment.left_out import refusing_class
from ..names import REASON
from . import functional
from .functional import all_gather, all_reduce, all_to_all, broadcast, gather, reduce, reduce_scatter, scatter

RemoteModule = refusing_class("torch.distributed.nn.RemoteModule", REASON)

__all__ = ["RemoteModule", "all_gather", "all_reduce", "all_to_all", "broadcast", "functional", "gather", "reduce",
           "reduce_scatter", "scatter"]
