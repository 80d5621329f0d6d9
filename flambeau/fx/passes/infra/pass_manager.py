"""Passes run in an order that satisfies constraints."""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Callable
from functools import wraps
from typing import Any

from ....nn.modules.module import Module
from ..._compatibility import compatibility
from ...graph_module import GraphModule
from .pass_base import PassResult

logger = logging.getLogger(__name__)

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


@compatibility(is_backward_compatible=False)
def pass_result_wrapper(fn: Any) -> Any:
    """A pass that returns a module, or None, as one that returns a `PassResult`."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped_fn(gm: Any) -> PassResult | None:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        return PassResult(result, True) if isinstance(result, Module) else None

    if not inspect.isfunction(fn):
        wrapped_fn.__name__ = type(fn).__name__
    return wrapped_fn


def _validate_pass_schedule_constraint(constraint: Callable[..., bool], passes: list[Any]) -> None:
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1:]):
            if not constraint(a, b):
                raise RuntimeError(f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index "
                                   f"{i} and {b} at index {j} in pass list.")


def _topological_sort_passes(passes: list[Any], constraints: list[Callable[..., bool]]) -> list[Any]:
    """The passes in an order that satisfies the constraints.

    Raises:
        RuntimeError: there is none.
    """
    if not constraints:
        return passes
    after: dict[Any, list[Any]] = {p: [] for p in passes}
    waiting: dict[Any, int] = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            if a == b:
                continue
            for constraint in constraints:
                if not constraint(a, b):
                    after[b].append(a)
                    waiting[a] += 1
    ready = deque(p for p in passes if waiting[p] == 0)
    result: list[Any] = []
    while ready:
        current = ready.popleft()
        result.append(current)
        for each in after[current]:
            waiting[each] -= 1
            if waiting[each] == 0:
                ready.append(each)
    rest = [p for p in waiting if waiting[p] != 0]
    if rest:
        raise RuntimeError(f"Circular dependency detected within the following passes: {rest}")
    return result


@compatibility(is_backward_compatible=False)
def this_before_that_pass_constraint(this: Callable[..., Any], that: Callable[..., Any]) -> Callable[..., bool]:
    """The constraint that one pass precedes another."""
    return lambda a, b: a != that or b != this


@compatibility(is_backward_compatible=False)
class PassManager:
    """Runs passes on modules.

    Args:
        passes: the passes; each returns a `PassResult`.
        constraints: functions of two passes: whether the first may precede the second.
        steps: how often the passes are run at most, until they change nothing.
        run_checks_after_each_pass: whether the check runs after each pass, too.
        suppress_check_failures: kept for callers; not used.
    """

    steps: int = 1
    _validated: bool = False

    def __init__(self, passes: list[Any] | None = None, constraints: list[Callable[..., bool]] | None = None,
                 steps: int | None = None, run_checks_after_each_pass: bool = False,
                 suppress_check_failures: bool = False) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        if steps:
            self.steps = steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass: Any) -> None:
        """Add a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., bool]) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Check that the order of the passes satisfies the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def solve_constraints(self) -> None:
        """Order the passes so that they satisfy the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[..., None]) -> None:
        """Set the function that checks a module."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.__dict__["check"] = check

    def check(self, module: Any) -> None:
        """Check a module."""

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for i, each in enumerate(self.passes):
                name = _name(each)
                try:
                    result = each(module)
                    if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                        raise TypeError(f"The result of the pass {name} should be type PassResult."
                                        "Please wrap it with pass_result_wrapper()")
                    module = result.graph_module
                    modified = modified or result.modified
                    if isinstance(module, GraphModule):
                        logger.debug("Graph after pass '%s': %s", name, module.graph)
                        module.recompile()
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as error:
                    former = list(map(_name, self.passes[:i]))
                    raise Exception(f"An error occurred when running the '{name}' pass after the following passes: "
                                    f"{former}") from error
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)


def _name(each: Any) -> str:
    return each.__name__ if inspect.isfunction(each) else type(each).__name__
