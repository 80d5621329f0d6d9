"""`torch.utils._mode_utils`: operators without modes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from .._tensor.overriding.dispatch import without_handlers as no_dispatch

T = TypeVar("T")


def all_same_mode(modes: Iterable[Any]) -> bool:
    """Whether all modes are equal."""
    modes = tuple(modes)
    return all(mode == modes[0] for mode in modes)


__all__ = ["all_same_mode", "no_dispatch"]
