"""`torch.cuda.amp.autocast`, deprecated: `torch.autocast("cuda")`."""

from __future__ import annotations

import warnings
from typing import Any

from ... import dtypes
from ...amp import autocast_mode as modes


class autocast(modes.autocast):
    """Deprecated: `torch.autocast("cuda", ...)`."""

    __module__ = "torch.cuda.amp.autocast_mode"

    def __init__(self, enabled: bool = True, dtype: Any = dtypes.float16, cache_enabled: bool = True) -> None:
        warnings.warn("`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', "
                      "args...)` instead.", FutureWarning, stacklevel=2)
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def _deprecated(name: str) -> None:
    warnings.warn(f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}(args..., "
                  "device_type='cuda')` instead.", FutureWarning, stacklevel=3)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """Deprecated: `torch.amp.custom_fwd(..., device_type="cuda")`."""
    _deprecated("custom_fwd")
    return modes.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Deprecated: `torch.amp.custom_bwd(..., device_type="cuda")`."""
    _deprecated("custom_bwd")
    return modes.custom_bwd(bwd, device_type="cuda")


def _cast(value: Any, dtype: Any) -> Any:
    warnings.warn("`torch.cuda.amp.autocast_mode._cast(value, dtype)` is deprecated. Please use "
                  "`torch.amp.autocast_mode._cast(value, 'cuda', dtype)` instead.", FutureWarning, stacklevel=2)
    return modes._cast(value, "cuda", dtype)


__all__ = ["autocast", "custom_bwd", "custom_fwd"]
