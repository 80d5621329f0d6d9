"""`torch.cpu.amp.autocast`, deprecated: `torch.autocast("cpu")`."""

from __future__ import annotations

import warnings
from typing import Any

from .... import dtypes
from ....amp import autocast_mode as modes


class autocast(modes.autocast):
    """Deprecated: `torch.autocast("cpu", ...)`."""

    __module__ = "torch.cpu.amp.autocast_mode"

    def __init__(self, enabled: bool = True, dtype: Any = dtypes.bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn("`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', "
                      "args...)` instead.", FutureWarning, stacklevel=2)
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
