"""Calls by NumPy's path: without launches of generated code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.backends.compiled.thresholds import SMALL_KERNELS


def without_kernels(call: Callable[[], Any]) -> Any:
    """The result of a call while small operators have no kernels."""
    SMALL_KERNELS[0], before = False, SMALL_KERNELS[0]
    try:
        return call()
    finally:
        SMALL_KERNELS[0] = before
