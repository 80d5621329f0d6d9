"""`torch.utils._thunk`: values that are computed when they are first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")


class Thunk(Generic[R]):
    """A value that a function computes once.

    Args:
        f: the function; it is given up afterwards.

    >>> value = Thunk(lambda: print("computed") or 3)
    >>> value.force(), value.force()
    computed
    (3, 3)
    """

    __slots__ = ("f", "r")

    def __init__(self, f: Callable[[], R]) -> None:
        self.f: Callable[[], R] | None = f
        self.r: R | None = None

    def force(self) -> R:
        """The value."""
        if self.f is not None:
            self.r = self.f()
            self.f = None
        return self.r  # type: ignore[return-value]


__all__ = ["Thunk"]
