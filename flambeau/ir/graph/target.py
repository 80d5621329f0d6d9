"""What a program is made for."""

from __future__ import annotations

from typing import NamedTuple

from .value import Value


class Target(NamedTuple):
    """What a run leaves behind: a new array with a value, or a leaf's array overwritten with it.

    Attributes:
        part: the shape and the strides, in elements, of what may be written of the leaf; None: all of it. What lies
            between may be others', who write there at the same time.
    """

    value: Value
    overwrites: Value | None = None
    region: tuple[tuple[int, ...], tuple[int, ...]] | None = None


__all__ = ["Target"]
