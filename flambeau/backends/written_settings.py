"""Settings of a GPU's libraries: who has to know when one is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_observers: list[Callable[[], None]] = []


def observe_writes(function: Callable[[], None]) -> None:
    """Call a function whenever a setting that a GPU's launches depend on is written."""
    _observers.append(function)


def written(name: str, value: Any) -> None:
    """Tell the observers of a write; arguments as for `Settings`'s `on_write`."""
    for function in _observers:
        function()


__all__ = ["observe_writes", "written"]
