"""`torch.accelerator.graphs`: recorded work of an accelerator, where there is none."""

from __future__ import annotations

from ..absent import dummy_class, refusing
from .absence import NONE

Graph = dummy_class("Graph", "torch.accelerator.graphs", NONE)
for _name in ("capture_begin", "capture_end", "debug_dump", "enable_debug_mode", "instantiate", "pool", "replay",
              "reset"):
    setattr(Graph, _name, refusing(RuntimeError, NONE))

__all__ = ["Graph"]
