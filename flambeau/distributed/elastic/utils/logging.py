"""Loggers of launchers, whose level is the variable LOGLEVEL."""

from __future__ import annotations

import inspect
import logging
import os
import sys

from .log_level import get_log_level

__all__ = ["get_logger"]


def get_logger(name: str | None = None) -> logging.Logger:
    """A logger.

    Args:
        name: its name; default: the module that calls this function.

    >>> from flambeau.distributed.elastic.utils.logging import get_logger
    >>> get_logger("launcher").name
    'launcher'
    """
    logger = logging.getLogger(name or _derive_module_name(2))
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger


def _derive_module_name(depth: int = 1) -> str | None:
    """The module of the function that is so many calls above this one."""
    frame = sys._getframe(depth)
    module = inspect.getmodule(frame)
    return module.__name__ if module else os.path.splitext(os.path.basename(frame.f_code.co_filename))[0]
