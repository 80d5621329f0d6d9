"""`torch.distributed.pipelining._backward`: backward passes of one stage."""

from __future__ import annotations

from .backward import stage_backward, stage_backward_input

__all__ = ["stage_backward", "stage_backward_input"]
