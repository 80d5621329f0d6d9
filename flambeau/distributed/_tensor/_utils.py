"""`torch.distributed._tensor._utils`: the former name of `torch.distributed.tensor._utils`."""

from __future__ import annotations

from ..tensor._utils import *  # noqa: F403
from ..tensor._utils import __all__ as __all__
