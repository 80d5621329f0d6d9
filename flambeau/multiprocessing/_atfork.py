"""Callbacks in forked children."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["register_after_fork"]


def register_after_fork(func: Callable[[], Any]) -> None:
    """Call a function in each child after a fork.

    >>> from flambeau.multiprocessing._atfork import register_after_fork
    >>> register_after_fork(lambda: None)
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=func)
