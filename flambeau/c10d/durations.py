"""Durations as programs give them: timedelta objects, or numbers of seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any


def as_duration(value: timedelta | float) -> timedelta:
    """A duration; numbers are seconds."""
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


class Duration:
    """An attribute that is read as timedelta and set as timedelta or seconds."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._slot = f"_duration_of_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance, self._slot)

    def __set__(self, instance: Any, value: timedelta | float) -> None:
        setattr(instance, self._slot, as_duration(value))


__all__ = ["Duration", "as_duration"]
