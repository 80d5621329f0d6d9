"""`torch.utils._typing_utils`: values for type checkers."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def not_none(obj: T | None) -> T:
    """A value that is known not to be None.

    Raises:
        TypeError: it is None.

    >>> not_none(3)
    3
    """
    if obj is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return obj


__all__ = ["not_none"]
