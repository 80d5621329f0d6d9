"""`torch.distributed.tensor.debug`: what distributed tensors send."""

from __future__ import annotations

from ._comm_mode import CommDebugMode

__all__ = ["CommDebugMode"]
