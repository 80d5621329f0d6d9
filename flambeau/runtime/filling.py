"""Launches as calls of a built-in function that fills new arrays, which generated code can make itself.

A launch that is a Python function makes its result's array, then calls generated code; its attribute `filling` says the
same in data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class NewArray(NamedTuple):
    """A new row-major array among the arguments."""

    shape: tuple[int, ...]
    dtype: np.dtype


class NewRows(NamedTuple):
    """A new row-major array with the free extents of a call, and others after them."""

    rest: tuple[int, ...]
    dtype: np.dtype


class Filling(NamedTuple):
    """A call that fills new arrays, of which one is the result.

    Attributes:
        function: returns its first or second argument, unless that is the result, where it computes nothing.
        sources: of its arguments: the number of an array among those that the launch is given, a `NewArray`, a
            `NewRows`, or a list of one object.
        owners: what has to live as long.
        result: the number of the new array that is the result.
    """

    function: Callable[..., Any]
    sources: tuple[Any, ...]
    owners: Any = None
    result: int = 0


def with_filling(launch: Callable[..., Any], filling: Filling | None) -> Callable[..., Any]:
    """Set a launch's attribute `filling`; return the launch."""
    if filling is not None:
        launch.filling = filling  # type: ignore[attr-defined]
    return launch


__all__ = ["Filling", "NewArray", "NewRows", "with_filling"]
