"""`torch.utils.backcompat`: warnings of what old programs meant by a call. Nothing warns, so they have no effect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial


class Warning:
    """A warning that can be enabled.

    Args:
        setter, getter: functions that write and read whether it is enabled.

    >>> import flambeau as torch
    >>> torch.utils.backcompat.keepdim_warning.enabled
    False
    """

    def __init__(self, setter: Callable[[bool], None], getter: Callable[[], bool]) -> None:
        self.setter, self.getter = setter, getter

    def set_enabled(self, value: bool) -> None:
        """Set whether it is enabled."""
        self.setter(value)

    def get_enabled(self) -> bool:
        """Whether it is enabled."""
        return self.getter()

    enabled = property(get_enabled, set_enabled)


def _switch() -> Warning:
    state = [False]
    return Warning(partial(state.__setitem__, 0), partial(state.__getitem__, 0))


broadcast_warning, keepdim_warning = _switch(), _switch()

__all__ = ["Warning", "broadcast_warning", "keepdim_warning"]
