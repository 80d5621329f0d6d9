"""`torch.distributed.tensor.parallel`: tensor parallelism of modules."""

from __future__ import annotations

from .api import parallelize_module
from .linear_styles import ColwiseParallel, ParallelStyle, RowwiseParallel, SequenceParallel
from .loss import loss_parallel
from .prepare import PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
           "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module"]
