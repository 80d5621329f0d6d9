"""The former manager of passes: passes change a module, or return another one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

from .infra.pass_manager import _validate_pass_schedule_constraint

logger = logging.getLogger(__name__)

__all__ = ["PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint",
           "this_before_that_pass_constraint"]


def inplace_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A pass that changes a module, as one that returns it."""
    @wraps(fn)
    def wrapped_fn(gm: Any) -> Any:
        fn(gm)
        return gm

    return wrapped_fn


def log_hook(fn: Callable[..., Any], level: int = logging.INFO) -> Callable[..., Any]:
    """A pass that logs its result."""
    @wraps(fn)
    def wrapped_fn(gm: Any) -> Any:
        value = fn(gm)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, value)
        return value

    return wrapped_fn


def loop_pass(base_pass: Callable[..., Any], n_iter: int | None = None,
              predicate: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A pass run several times: a number of times, or while a condition of its result is true.

    Args:
        base_pass: the pass.
        n_iter: the number.
        predicate: the condition; one of the two is given.
    """
    if (n_iter is not None) == (predicate is not None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def new_pass(source: Any) -> Any:
        output = source
        if n_iter is not None and n_iter > 0:
            for _ in range(n_iter):
                output = base_pass(output)
        elif predicate is not None:
            while predicate(output):
                output = base_pass(output)
        else:
            raise RuntimeError(f"loop_pass must be given positive int n_iter (given {n_iter}) xor predicate (given "
                               f"{predicate})")
        return output

    return new_pass


def this_before_that_pass_constraint(this: Callable[..., Any], that: Callable[..., Any]) -> Callable[..., bool]:
    """The constraint that one pass precedes another."""
    return lambda a, b: a != that or b != this


def these_before_those_pass_constraint(these: Callable[..., Any], those: Callable[..., Any]) -> Callable[..., bool]:
    """The constraint that one pass, however it is wrapped, precedes another."""
    return lambda a, b: unwrap(a) != those or unwrap(b) != these


class PassManager:
    """Runs passes on modules; each returns the module.

    Args:
        passes: the passes.
        constraints: functions of two passes: whether the first may precede the second.
    """

    def __init__(self, passes: list[Any] | None = None, constraints: list[Any] | None = None) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Any]) -> PassManager:
        """The manager of passes without constraints."""
        return cls(passes)

    def add_pass(self, _pass: Any) -> None:
        """Add a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Any) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Remove the passes of given names."""
        self.passes = [each for each in self.passes if each.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Any, _replacement: Any) -> None:
        """Replace a pass by another one."""
        self.passes = [_replacement if each.__name__ == _target.__name__ else each for each in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Check that the order of the passes satisfies the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for each in self.passes:
            source = each(source)
        return source
