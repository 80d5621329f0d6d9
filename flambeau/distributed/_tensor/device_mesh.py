"""`torch.distributed._tensor.device_mesh`: the former name of `torch.distributed.tensor.device_mesh`."""

from __future__ import annotations

from ..tensor.device_mesh import *  # noqa: F403
from ..tensor.device_mesh import __all__ as __all__
