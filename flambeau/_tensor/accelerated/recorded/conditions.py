"""When recorded calls are valid: nothing but devices, and perhaps autocast, changes what functions do."""

from __future__ import annotations

from ....engine.grad_mode import inference
from ....modes import (
    active_autocasts,
    active_transforms,
    determinism,
    dispatch_in_use,
    enabled_autocasts,
    filled_memory,
    inference_used,
    special,
)
from ...overriding import entry_points


def only_devices() -> bool:
    """Whether only devices, and autocast where it does not act on a function, are in use."""
    return special[0] == 1 + active_autocasts[0] and dispatch_in_use[0] == 1 and (
        entry_points.in_use[0] == 1 + enabled_autocasts[0])


def may_draw() -> bool:
    """Whether functions that draw or fill memory may be recorded calls."""
    return only_devices() and not (active_transforms[0] or determinism[0] or filled_memory[0] or (
        inference_used[0] and inference.get()))


__all__ = ["may_draw", "only_devices"]
