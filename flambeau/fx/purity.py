"""Side effects: which functions remain in a graph although nobody uses their results."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import flambeau as torch

from ..ops.overloads import OpOverload, OpOverloadPacket
from ._compatibility import compatibility

_F = TypeVar("_F", bound=Callable[..., Any])

_side_effectful_functions: set[Any] = {
    torch._assert, torch._assert_async, operator.setitem, torch.amp._enter_autocast, torch.amp._exit_autocast,
    torch.set_grad_enabled}

_RANDOM = frozenset((
    "bernoulli", "bernoulli_", "dropout", "dropout_", "multinomial", "normal", "normal_", "poisson", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "uniform_", "random_", "exponential_",
    "cauchy_", "log_normal_", "geometric_", "rrelu", "alpha_dropout", "feature_dropout", "feature_alpha_dropout",
    "native_dropout", "binomial"))


@compatibility(is_backward_compatible=False)
def has_side_effect(fn: _F) -> _F:
    """Register a function whose calls `Graph.eliminate_dead_code` keeps; also a decorator.

    >>> import flambeau as torch
    >>> @torch.fx.has_side_effect
    ... def log(x):
    ...     print(x)
    """
    _side_effectful_functions.add(fn)
    return fn


def is_impure(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], impure_random: bool = True) -> bool:
    """Whether a call has side effects: a registered function, an operator that writes, or random numbers."""
    if target in _side_effectful_functions:
        return True
    if isinstance(target, OpOverloadPacket):
        target = getattr(target, "default", target)
    if isinstance(target, OpOverload):
        try:
            schema = target._schema
        except AttributeError:
            schema = None
        if schema is not None and schema.is_mutable:
            return True
        return impure_random and target._opname in _RANDOM
    name = getattr(target, "__name__", "")
    if str(getattr(target, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]:
        return name in _RANDOM_FUNCTIONS and getattr(torch, name, None) is target
    return False


#: functions of `torch` that draw random numbers
_RANDOM_FUNCTIONS = frozenset(("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like",
                               "normal", "poisson", "bernoulli", "multinomial"))

__all__ = ["has_side_effect", "is_impure"]
