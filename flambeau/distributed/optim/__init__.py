"""`torch.distributed.optim`: optimizers whose state is divided, or whose models are averaged."""

from __future__ import annotations

from ...environment.left_out import refusing_class
from ..names import REASON
from . import utils
from .functional_optimizers import (
    _FunctionalAdadelta,
    _FunctionalAdagrad,
    _FunctionalAdam,
    _FunctionalAdamax,
    _FunctionalAdamW,
    _FunctionalRMSprop,
    _FunctionalRprop,
    _FunctionalSGD,
)
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .utils import as_functional_optim
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

DistributedOptimizer = refusing_class("torch.distributed.optim.DistributedOptimizer", REASON)

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "_FunctionalAdadelta",
           "_FunctionalAdagrad", "_FunctionalAdam", "_FunctionalAdamW", "_FunctionalAdamax", "_FunctionalRMSprop",
           "_FunctionalRprop", "_FunctionalSGD", "as_functional_optim", "utils"]
