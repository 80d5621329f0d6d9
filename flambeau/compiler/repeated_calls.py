"""Calls that `explain` repeats: the first one has its effects, and those after it leave none."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._tensor import Tensor
from ..ir.graph.value import Unsupported
from ..optim.optimizer import Optimizer
from ..trees import tree_flatten
from .execution.cache_entry import GUARDS_FAILED
from .guards.guard import Guard
from .guards.object_kinds import LRU_CACHE
from .symbolic.rollback import restorers
from .tracing.speculation import random_states, reachable


class RepeatedCalls:
    """Runs calls of one function; only the first one has lasting effects.

    Objects, tensors, gradients and random numbers that the function's code can reach are restored after each other
    call, and what it prints to `sys.stdout` is dropped. Files that it writes are written again.

    Args:
        function: the function.
        args, kwargs: its arguments.
    """

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        self._roots = [function, *tree_flatten((args, kwargs))[0]]
        self._has_run = False

    def run(self, call: Callable[[], Any]) -> Any:
        """Run a call."""
        if not self._has_run:
            self._has_run = True
            return call()
        with self._without_effects():
            return call()

    def replay(self, entry: Any, tensors: Sequence[Any]) -> bool:
        """Replay a call; return False if the guards of the entry do not hold, and nothing was run."""
        has_run = self._has_run
        found = self.run(lambda: entry.run(tensors)) is not GUARDS_FAILED
        self._has_run = has_run or found
        return found

    @contextlib.contextmanager
    def _without_effects(self) -> Iterator[None]:
        try:
            guards = [each for each in reachable(self._roots)[0].guards.values()
                      if not isinstance(each.holder, LRU_CACHE)]
        except Unsupported:  # too much
            guards = []
        undo = [*restorers(guards), *_tensor_restorers(_tensors(guards, self._roots)), *random_states()]
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield  # debug output of the compiler goes to `sys.stderr`
        finally:
            for restore in undo:
                restore()


def _tensors(guards: Sequence[Guard], roots: Sequence[Any]) -> list[Any]:
    """Return the tensors that guards lead to, and their gradients."""
    found: dict[int, Any] = {}
    pending = [*roots, *(x for guard in guards for x in (guard.holder, guard.value))]
    while pending:
        x = pending.pop()
        if isinstance(x, Tensor):
            if id(x) not in found:
                found[id(x)] = x
                pending.append(x._grad)
        elif x.__class__ is tuple:
            pending += x
        elif isinstance(x, Optimizer):
            pending += [each for entry in x.state.values() if isinstance(entry, dict) for each in entry.values()]
            pending += [p for group in x.param_groups for p in group["params"]]
    return [*found.values()]


def _tensor_restorers(tensors: Sequence[Any]) -> list[Callable[[], None]]:
    return [each for tensor in tensors for each in [_tensor_restorer(tensor)] if each is not None]


def _tensor_restorer(tensor: Any) -> Callable[[], None] | None:
    array, gradient, node, flag, counter = (
        tensor._array, tensor._grad, tensor._node, tensor._requires_grad, tensor._counter)
    if type(array) is not np.ndarray:
        return None
    content, version = array.copy(order="K"), counter[0] if counter.__class__ is list else None

    def restore() -> None:
        tensor._array, tensor._grad, tensor._node, tensor._requires_grad = array, gradient, node, flag
        if array.tobytes() != content.tobytes():
            array[...] = content
        tensor._counter = counter
        if version is not None:
            counter[0] = version

    return restore


__all__ = ["RepeatedCalls"]
