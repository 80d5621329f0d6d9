"""`torch.distributed._tensor.experimental`: the former name of `torch.distributed.tensor.experimental`."""

from __future__ import annotations

from ..tensor.experimental import *  # noqa: F403
from ..tensor.experimental import __all__ as __all__
