"""The level of launchers' loggers."""

from __future__ import annotations

__all__ = ["get_log_level"]


def get_log_level() -> str:
    """The default level.

    >>> from flambeau.distributed.elastic.utils.log_level import get_log_level
    >>> get_log_level()
    'WARNING'
    """
    return "WARNING"
