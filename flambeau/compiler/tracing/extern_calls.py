"""What a program calls between its pieces: operators as a whole, draws of random numbers, memory seen otherwise.

Each is an object that says what it does, so that it can be written down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._tensor.dispatch.apply import apply
from ..._tensor.tensor import wrap
from ...engine.grad_mode import no_grad
from ...ops.declare import Op

DONE = np.zeros((), np.bool_)


class RandomDraw:
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


class OperatorCall:
    """An operator applied to arrays.

    Args:
        op: the operator.
        fixed: its inputs; None for those that are given.
        places: which of them are given.
        params: its parameters; None for those that are given, too.
        named: these by name and, where they are in a list, by their place in it.
        keeping: lists among the parameters in which it leaves arrays, which are given back behind its results.
    """

    __slots__ = ("array_params", "fixed", "keeping", "op", "params", "places")

    def __init__(self, op: Op, fixed: Sequence[Any], places: Sequence[int], params: dict[str, Any],
                 array_params: Sequence[tuple[str, int | None]], keeping: Sequence[str]) -> None:
        self.op, self.fixed, self.places = op, list(fixed), tuple(places)
        self.params, self.array_params, self.keeping = dict(params), tuple(array_params), tuple(keeping)
        for name, at in array_params:
            if at is None:
                self.params[name] = None
            else:
                self.params[name] = [None if i == at else x for i, x in enumerate(self.params[name])]

    def __call__(self, *given: np.ndarray) -> list[np.ndarray]:
        with no_grad():
            args, count = list(self.fixed), len(self.places)
            for i, a in zip(self.places, given[:count], strict=True):
                args[i] = wrap(a)
            again = {name: list(value) if isinstance(value, list) else value for name, value in self.params.items()}
            for (name, at), a in zip(self.array_params, given[count:], strict=True):
                if at is None:
                    again[name] = a
                else:
                    again[name][at] = a
            found = apply(self.op, args, again)
            return [*(t._array for t in (found if self.op.n_outputs != 1 else [found])),
                    *(a for name in self.keeping for a in again[name])]


class Reinterpretation:
    """All elements of memory, as those of another dtype."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def __call__(self, a: np.ndarray) -> list[np.ndarray]:
        return [np.ascontiguousarray(a).reshape(-1).view(self.dtype)]


__all__ = ["DONE", "OperatorCall", "RandomDraw", "Reinterpretation"]
