"""Calls that come again and again with small arrays: the launch of the one operator that a function applies.

A function of the public namespace parses and checks its arguments before it applies an operator. Where a call has the
layouts and parameters of earlier ones, nothing of that can end otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.compiled import SMALL_CALLS_BEFORE_KERNELS, enable_kernels, next_small_call
from ...backends.compiled.thresholds import SMALL_KERNELS
from ...devices import memory_format
from ...dtypes import BFLOAT16, dtype
from ...engine.grad_mode import grad_mode
from ...errstate import run_in_quiet
from ...modes import active_transforms, determinism, inference, inference_used, special
from ...shapes import Size
from ..overriding.first_calls import called_again
from ..parameter import Parameter
from ..tensor import Tensor, wrap
from .repeated_layouts import F32, MOST, KnownCalls, Launches, ndarray, observing

new = object.__new__
_grad_enabled, _inferring = grad_mode.get, inference.get
#: classes of arguments whose values are parts of keys
_PLAIN = frozenset((int, bool, str, tuple, Size, type(None), dtype, memory_format))
_TENSORS, _INTS = frozenset((Tensor, Parameter)), frozenset((int,))
#: NumPy's number of dtypes that it does not have, and what stands for bfloat16
_VOID, _BFLOAT16 = np.dtype("V1").num, -1

#: any number of elements
ANY = 1 << 62


def repeated(function: Callable[..., Any], records: bool = True, differentiable: bool = True,
             most: int = MOST) -> Callable[..., Any]:
    """A function that applies operators to its arguments, with launches for calls that come again and again.

    What it applies may depend on values only where an operator raises.

    Args:
        records: whether calls that are recorded have launches, too; False where the function has a fast path for them.
        differentiable: False where no call is recorded, whatever requires gradients.
        most: the most elements of a tensor; `ANY` where few may be read of many.
    """
    launches = Launches()
    find = launches.single.get
    observed: dict[Any, Any] = {}
    known_calls = KnownCalls(differentiable, wait=1)
    enter: Any = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal enter
        try:
            if enter is not None:
                result = enter(args, kwargs)
                if result is not None:
                    if result is not False:
                        return result
                    if not records:
                        return function(*args, **kwargs)
                elif not SMALL_KERNELS[0]:
                    return function(*args, **kwargs)
            elif not SMALL_KERNELS[0]:
                if next_small_call() == SMALL_CALLS_BEFORE_KERNELS:
                    enable_kernels()
                return function(*args, **kwargs) if kwargs else function(*args)
            elif not records and args and args[0].__class__ in _TENSORS and args[0]._requires_grad and _grad_enabled():
                return function(*args, **kwargs)
            if launches.skips:
                launches.skips -= 1
                return function(*args, **kwargs)
            if special[0] or active_transforms[0] or determinism[0] or (inference_used[0] and _inferring()):
                return function(*args, **kwargs)
            parts: list[Any] = []
            tensors: list[Any] = []
            arrays: list[Any] = []
            bit, mask = 1, 0
            for x in (*args, *kwargs.values()) if kwargs else args:
                kind = x.__class__
                if kind in _TENSORS:
                    a = x._array
                    if a.__class__ is not ndarray or a.size > most:
                        return function(*args, **kwargs)
                    tensors.append(x)
                    arrays.append(a)
                    number = a.dtype.num
                    if number == _VOID and a.dtype is BFLOAT16:
                        number = _BFLOAT16
                    parts += (number, a.shape, a.strides)
                    if x._requires_grad:
                        mask |= bit
                    bit += bit
                elif kind is float:
                    parts.append(x or repr(x))
                elif kind in _PLAIN:
                    parts += (kind, x)
                    if kind is tuple:  # (1,), (1.0,) and (True,) are equal, and so are (0.0,) and (-0.0,)
                        kinds = tuple(map(type, x))
                        parts.append(kinds if _INTS.issuperset(kinds) else (kinds, repr(x)))
                else:
                    return function(*args, **kwargs)
            if kwargs:
                parts += kwargs
            if bit > 2:
                x = tensors[1]
                if x is tensors[0] or (bit > 4 and (x is tensors[2] or tensors[0] is tensors[2] or (
                        bit > 8 and len(set(map(id, tensors))) < len(tensors)))):
                    ids = list(map(id, tensors))
                    parts += map(ids.index, ids)
            if mask:
                if not differentiable or not _grad_enabled():
                    mask = 0
                elif not records or inference_used[0]:  # tensors of inference mode may not be saved
                    return function(*args, **kwargs)
            key = (mask, *parts)
            try:
                known = find(key)
            except TypeError:  # a list in a tuple
                return function(*args, **kwargs)
            if known:
                if launches.misses:
                    launches.hit()
                launch, several, recorded = known
                if recorded is not None:
                    result = recorded(tensors, arrays)
                    return function(*args, **kwargs) if result is None else result
                # NumPy's warnings are off where it computes
                array = launch(*arrays) if hasattr(launch, "filling") else run_in_quiet(launch, arrays)
                if array is None:  # an index is out of range
                    return function(*args, **kwargs)
                known_calls.left -= 1
                if known_calls.left <= 0:
                    known_calls.begin_attempt()
                    enter = known_calls.add(args, kwargs, launch, several)
                if several is not None:
                    return several([wrap(each) for each in array])
                result = new(Tensor)
                result._array = array
                result._requires_grad = False
                result._output_nr = 0
                result._node = result._grad = result._counter = result._base = result._accumulator = None
                return result
            if known is False or _VOID in parts:
                launches.miss()
                return function(*args, **kwargs)
            if not launches.is_due(key):
                result = function(*args, **kwargs)
                recorded = launches.candidate(key)
                if recorded and recorded[2] is not None and not recorded[2].describes(result, tensors, arrays):
                    launches.refuse(key)
                    return result
                launches.consider(F32, key, tuple(arrays), _arrays(result), _prepared, observed.pop(key, None))
                if not mask:
                    known_calls.free_left -= 1
                    if known_calls.free_left <= 0:
                        from .free.calls import observe_free

                        enter = observe_free(known_calls, function, args, kwargs, result) or enter
                return result
            from .call_observation import observe

            result, seen = observe(function, args, kwargs, tensors, observing)
            if seen is not None:  # a fast path may have other last bits than the operators that were observed
                result = function(*args, **kwargs)
            observed.clear()
            observed[key] = seen
            launches.consider(F32, key, tuple(arrays), _arrays(result), _prepared, seen)
            return result
        except Exception:
            result = called_again(call, args, kwargs)
            if result is NotImplemented:
                raise
            return result

    return call


def launched(function: Callable[..., Any], differentiable: bool = True, most: int = MOST) -> Callable[..., Any]:
    """`repeated`, for calls that are not recorded: none of those of a function that is not differentiable."""
    return repeated(function, not differentiable, differentiable, most)


def repeated_in_place(function: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place form of a repeated elementwise function; `general` records and checks, where anything is to be."""

    @functools.wraps(general)
    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not SMALL_KERNELS[0] or special[0] or inference_used[0] or active_transforms[0] or kwargs or (
                input.__class__ not in _TENSORS):
            return general(input, *args, **kwargs)
        a = input._array
        if a.__class__ is not ndarray or a.size > MOST or 0 in a.strides or a.base is not None:
            return general(input, *args)
        records = input._requires_grad or input._base is not None
        for x in args:
            if x.__class__ in _TENSORS:
                b = x._array
                if b.__class__ is not ndarray or b.dtype is not a.dtype or b.shape != a.shape or b.base is a:
                    return general(input, *args)
                records = records or x._requires_grad
            elif x.__class__ is not float:
                return general(input, *args)
        if records and _grad_enabled():
            return general(input, *args)
        result = function(input, *args)._array
        if result.dtype is not a.dtype or result.shape != a.shape:
            return general(input, *args)
        a[...] = result
        counter = input._counter
        if counter is None:
            input._counter = [1]
        else:
            counter[0] += 1
        return input

    return call


def _arrays(result: Any) -> Any:
    """The array, or the arrays, of a result."""
    if isinstance(result, tuple):
        return tuple([getattr(each, "_array", None) for each in result])
    return getattr(result, "_array", None)


def _prepared(call: Any) -> Any:
    """(launch, class of several results, recorded call) of an observed call; None if it has no launch."""
    from .call_observation import prepared

    return prepared(call)


__all__ = ["ANY", "launched", "observing", "repeated", "repeated_in_place"]
