"""`torch.cuda` where there is a device: its names, which take the place of those that refuse."""

from __future__ import annotations

from typing import Any

from ..._tensor.accelerated.generators import default_generators
from . import devices, graphed_callables, graphs, memory, random, streams, tensor_types

#: name -> what `torch.cuda` has under it while there is a runtime
NAMES: dict[str, Any] = {**devices.NAMES, **graphs.NAMES, **graphed_callables.NAMES, **memory.NAMES,
                         **random.NAMES, **streams.NAMES, **tensor_types.NAMES}

__all__ = ["NAMES", "default_generators"]
