"""`torch.distributed.optim`: optimizers whose state is divided, or whose models are averaged."""

from __future__ import annotations

from ...environment.left_out import refusing_class
from ..names import REASON
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

DistributedOptimizer = refusing_class("torch.distributed.optim.DistributedOptimizer", REASON)

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
