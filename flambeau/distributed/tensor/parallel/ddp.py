"""`torch.distributed.tensor.parallel.ddp`: data parallelism of modules that tensor parallelism has divided."""

from __future__ import annotations

from ....nn.parallel.local_parameters import localize_parameters as _pre_dp_module_transform

__all__ = ["_pre_dp_module_transform"]
