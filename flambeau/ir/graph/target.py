"""Targets: the values that a program returns or writes over its inputs."""

from __future__ import annotations

from typing import NamedTuple

from .value import Value


class Target(NamedTuple):
    """An output of a program: a new array, or an input's array that is overwritten.

    Attributes:
        value: the value to return or to write.
        overwrites: the input whose array is overwritten; None: a new array is returned.
        region: shape and strides, in elements, of the part of the input that may be written; None: all of it. Other
            threads may write the elements in between at the same time.
    """

    value: Value
    overwrites: Value | None = None
    region: tuple[tuple[int, ...], tuple[int, ...]] | None = None


__all__ = ["Target"]
