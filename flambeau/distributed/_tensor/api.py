"""`torch.distributed._tensor.api`: the former name of `torch.distributed.tensor._api`."""

from __future__ import annotations

from ..tensor._api import *  # noqa: F403
from ..tensor._api import __all__ as __all__
