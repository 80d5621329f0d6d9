"""`ntuple`: a scalar argument repeated once per spatial dimension."""

from __future__ import annotations

from typing import Any


def ntuple(value: Any, n: int) -> tuple:
    """`value` as a tuple: a tuple or list is converted, anything else is repeated `n` times.

    >>> from flambeau.nn.ntuple import ntuple
    >>> ntuple(3, 2), ntuple([1, 2], 2)
    ((3, 3), (1, 2))
    """
    return tuple(value) if isinstance(value, tuple | list) else (value,) * n
