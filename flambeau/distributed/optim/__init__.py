"""`torch.distributed.optim`: optimizers whose state is divided, or whose models are averaged."""

from __future__ import annotations

from ...environment.left_out import refusing_class
from ..names import REASON
from . import utils
from .apply_optimizer_in_backward import _apply_optimizer_in_backward, _get_in_backward_optimizers
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
from .named_optimizer import _NamedOptimizer
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .utils import as_functional_optim
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

DistributedOptimizer = refusing_class("torch.distributed.optim.DistributedOptimizer", REASON)

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "_FunctionalAdadelta",
           "_FunctionalAdagrad", "_FunctionalAdam", "_FunctionalAdamW", "_FunctionalAdamax", "_FunctionalRMSprop",
           "_FunctionalRprop", "_FunctionalSGD", "_NamedOptimizer", "_apply_optimizer_in_backward",
           "_get_in_backward_optimizers", "as_functional_optim", "utils"]
