"""`torch.nn.parallel`: parallelism over accelerators and processes, of which there is one CPU and one process."""

from __future__ import annotations

import warnings
from typing import Any

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate",
           "scatter"]


class DistributedDataParallelCPU(DistributedDataParallel):
    """Deprecated: use `DistributedDataParallel`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("`torch.nn.parallel.DistributedDataParallelCPU` is deprecated, please use "
                      "`torch.nn.parallel.DistributedDataParallel` instead.", FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)
