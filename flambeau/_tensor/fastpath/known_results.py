"""Functions whose calls generated code knows from one call: factories, and those with a launch of their own.

A factory's results are the same in every call, so that generated code copies one that was kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import SMALL_KERNELS
from ...devices import ambient
from ...dtypes import BFLOAT16, other_default
from ...modes import special
from ..tensor import Tensor
from .repeated_layouts import LEARNED, KnownCalls

#: functions whose first argument is a tensor of which only the layout counts
_OF_A_TENSOR = frozenset(("empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_ones",
                          "new_full"))
#: functions whose results have any elements
_UNSET = frozenset(("empty", "empty_like", "new_empty"))


def known_results(function: Callable[..., Any]) -> Callable[..., Any]:
    """A factory with known calls: its results depend on its arguments, the default dtype and the default device.

    Its first argument may be a tensor of which only the layout counts. Calls with other tensors are never known.
    """
    first, unset = int(function.__name__ in _OF_A_TENSOR), function.__name__ in _UNSET

    def launch_of(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if ambient[0] is not None or other_default[0] or any(map(has_values, (*args[first:], *kwargs.values()))):
            return None
        from .copy_launches import constant_launch, empty_launch

        return (empty_launch if unset else constant_launch)(result._array)

    return _known(function, launch_of, KnownCalls(False, (ambient, other_default)))


def known_by(make: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator of a function with launches of its own.

    Args:
        make: (arguments of a call) -> the launch of this call, or None. The launch gives None where the function itself
            has to run.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def launch_of(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            launch = make(*args, **kwargs)
            if launch is None:
                return None
            found, expected = launch(*[x._array for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]), (
                result._array)
            same = found is not None and found.dtype is expected.dtype and found.shape == expected.shape and (
                found.strides == expected.strides and found.tobytes() == expected.tobytes())
            return launch if same else None

        return _known(function, launch_of, KnownCalls())

    return decorate


def _known(function: Callable[..., Any], launch_of: Callable[..., Any], known_calls: KnownCalls) -> Callable[..., Any]:
    """A function of which every so many calls are made known.

    Args:
        launch_of: (result, arguments by position, by name) -> the launch, or None.
    """
    calls = count(1)
    enter: Any = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal enter
        if enter is not None:
            result = enter(args, kwargs)
            if result is not None and result is not False:
                return result
        result = function(*args, **kwargs)
        if SMALL_KERNELS[0] and not next(calls) % LEARNED and not special[0] and is_new(result):
            launch = launch_of(result, args, kwargs)
            if launch is not None:
                enter = known_calls.add(args, kwargs, launch)
        return result

    code = function.__code__  # contexts of devices look for its name
    call.__code__ = call.__code__.replace(co_name=code.co_name, co_qualname=code.co_qualname)  # type: ignore[attr-defined]
    return call



def has_values(argument: Any) -> bool:
    """Whether an argument is a tensor, or has some."""
    if argument.__class__ is tuple or argument.__class__ is list:
        return any(map(has_values, argument))
    return isinstance(argument, Tensor)


def is_new(result: Any) -> bool:
    """Whether a result is a new tensor as those that known calls make."""
    if result.__class__ is not Tensor or result._requires_grad or result._inference or result._base is not None:
        return False
    a = result._array
    return a.__class__ is np.ndarray and result._counter is None and (
        a.dtype.kind != "V" or a.dtype is BFLOAT16)  # complex32 warns


__all__ = ["has_values", "is_new", "known_by", "known_results"]
