"""`torch.distributed.tensor.parallel.style`: all styles."""

from __future__ import annotations

from .linear_styles import ColwiseParallel, ParallelStyle, RowwiseParallel, SequenceParallel
from .prepare import PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
           "RowwiseParallel", "SequenceParallel"]
