"""`torch.distributed.optim`: optimizers whose state is divided between processes."""

from __future__ import annotations

from ...environment.left_out import refusing_class
from ..names import REASON
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

DistributedOptimizer, PostLocalSGDOptimizer = (
    refusing_class(f"torch.distributed.optim.{_name}", REASON) for _name in ("DistributedOptimizer",
                                                                             "PostLocalSGDOptimizer"))

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
