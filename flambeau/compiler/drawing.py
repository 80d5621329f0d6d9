"""Draws of random numbers, as what a program calls between its pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

DONE = np.zeros((), np.bool_)


class Draw:
    """A draw done anew, from the same stream: gives the numbers, and a value that says that it was done.

    Args:
        function: draws from an engine.
        engine: the stream.
        arguments: what else it takes; arrays among them are given when it is called.
        places: which of them are given.
    """

    __slots__ = ("arguments", "engine", "function", "places")

    def __init__(self, function: Callable[..., Any], engine: Any, arguments: Sequence[Any], places: Sequence[int]
                 ) -> None:
        self.function, self.engine, self.places = function, engine, tuple(places)
        self.arguments = [None if i in self.places else x for i, x in enumerate(arguments)]

    def __call__(self, *given: np.ndarray) -> list[np.ndarray]:
        args = list(self.arguments)
        for i, a in zip(self.places, given, strict=False):  # what else is given says that the draw before was done
            args[i] = a
        return [np.asarray(self.function(self.engine, *args)), DONE]


__all__ = ["DONE", "Draw"]
