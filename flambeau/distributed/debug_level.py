"""How much process groups check, of the environment variable TORCH_DISTRIBUTED_DEBUG."""

from __future__ import annotations

import enum
import os

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]


class DebugLevel(enum.IntEnum):
    """How much process groups check.

    >>> from flambeau.distributed import DebugLevel
    >>> DebugLevel.OFF
    <DebugLevel.OFF: 0>
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


def _of_environment() -> DebugLevel:
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    return DebugLevel[name]


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """How much process groups check.

    >>> import flambeau as torch
    >>> torch.distributed.get_debug_level() in torch.distributed.DebugLevel
    True
    """
    return _of_environment() if _level is None else _level


def set_debug_level(level: DebugLevel) -> None:
    """Set how much process groups check.

    Args:
        level: how much.
    """
    global _level
    _level = level


def set_debug_level_from_env() -> None:
    """Take how much process groups check from the environment."""
    set_debug_level(_of_environment())
