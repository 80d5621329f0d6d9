"""`torch.distributed._tensor.placement_types`: the former name of `torch.distributed.tensor.placement_types`."""

from __future__ import annotations

from ..tensor.placement_types import *  # noqa: F403
from ..tensor.placement_types import __all__ as __all__
