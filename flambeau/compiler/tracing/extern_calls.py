"""Callables of extern kernels: eager operators, random draws and reinterpreted memory, run between compiled kernels.

They are objects instead of closures, so that the persistent cache can pickle them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._tensor.dispatch.apply import apply
from ..._tensor.tensor import wrap
from ...engine.grad_mode import no_grad
from ...kernels.random.engine import STATE_BYTES
from ...ops.declare import Op

DONE = np.zeros((), np.bool_)


class RandomDraw:
    """A draw of random numbers; returns the numbers and a token, on which the next draw depends.

    Args:
        function: draws from an engine.
        engine: the generator's engine.
        arguments: the other arguments of `function`.
        places: positions of the arguments that are arrays and are passed at the call.
        records_state: whether the generator's state before the draw is a third result.
    """

    __slots__ = ("arguments", "engine", "function", "places", "records_state")

    def __init__(self, function: Callable[..., Any], engine: Any, arguments: Sequence[Any], places: Sequence[int],
                 records_state: bool = False) -> None:
        self.function, self.engine, self.places, self.records_state = function, engine, tuple(places), records_state
        self.arguments = [None if i in self.places else x for i, x in enumerate(arguments)]

    @property
    def state_outputs(self) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Shape and dtype of the state, if it is recorded."""
        return [((STATE_BYTES,), np.dtype(np.uint8))] if self.records_state else []

    @property
    def replay(self) -> ReplayedDraw | None:
        """The callable that draws the same numbers again; None if the state is not recorded."""
        return ReplayedDraw(self) if self.records_state else None

    def numbers(self, engine: Any, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Return numbers of an engine."""
        args = list(self.arguments)
        for i, a in zip(self.places, arrays, strict=False):  # the last array may be the token of the previous draw
            args[i] = a
        return np.asarray(self.function(engine, *args))

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        states = [self.engine.get_state()] if self.records_state else []
        return [self.numbers(self.engine, arrays), DONE, *states]


class ReplayedDraw:
    """A draw that is repeated from the state that it recorded; the generator is not advanced.

    Attributes:
        count: how many arrays it takes after the state.
    """

    __slots__ = ("_draw", "count")

    def __init__(self, draw: RandomDraw) -> None:
        self._draw, self.count = draw, len(draw.places)

    def __call__(self, state: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
        engine = self._draw.engine.copy()
        engine.set_state(state)
        return [self._draw.numbers(engine, arrays)]


class OperatorCall:
    """An operator that runs eagerly on arrays.

    Args:
        op: the operator.
        fixed: its inputs; None for those that are passed at the call.
        places: positions of the inputs that are passed at the call.
        params: its parameters; None for those that are passed at the call.
        array_params: these parameters: their names and, for entries of a list, their index.
        output_params: parameters that are lists which the operator fills with arrays; returned after its results.
    """

    __slots__ = ("array_params", "fixed", "op", "output_params", "params", "places")

    def __init__(self, op: Op, fixed: Sequence[Any], places: Sequence[int], params: dict[str, Any],
                 array_params: Sequence[tuple[str, int | None]], output_params: Sequence[str]) -> None:
        self.op, self.fixed, self.places = op, list(fixed), tuple(places)
        self.params, self.array_params, self.output_params = dict(params), tuple(array_params), tuple(output_params)
        for name, at in array_params:
            if at is None:
                self.params[name] = None
            else:
                self.params[name] = [None if i == at else x for i, x in enumerate(self.params[name])]

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        with no_grad():
            args, count = list(self.fixed), len(self.places)
            for i, a in zip(self.places, arrays[:count], strict=True):
                args[i] = wrap(a)
            params = {name: list(value) if isinstance(value, list) else value for name, value in self.params.items()}
            for (name, at), a in zip(self.array_params, arrays[count:], strict=True):
                if at is None:
                    params[name] = a
                else:
                    params[name][at] = a
            results = apply(self.op, args, params)
            return [*(t._array for t in (results if self.op.n_outputs != 1 else [results])),
                    *(a for name in self.output_params for a in params[name])]


class Reinterpretation:
    """A flat view of an array as another dtype."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def __call__(self, a: np.ndarray) -> list[np.ndarray]:
        return [np.ascontiguousarray(a).reshape(-1).view(self.dtype)]


__all__ = ["DONE", "OperatorCall", "RandomDraw", "Reinterpretation"]
