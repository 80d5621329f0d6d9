"""`torch.amp`: mixed precision."""

from __future__ import annotations

from . import policies  # noqa: F401  # it says what autocast does
from .autocast_mode import (
    _enter_autocast,
    _exit_autocast,
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "_enter_autocast", "_exit_autocast", "autocast", "custom_bwd", "custom_fwd",
           "is_autocast_available"]
