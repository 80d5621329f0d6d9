"""Calls that come again and again with small arrays: the launch of the one operator that a function applies.

A function of the public namespace parses and checks its arguments before it applies an operator. Where a call has the
layouts and parameters of earlier ones, nothing of that can end otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import SMALL_KERNELS
from ...engine.grad_mode import grad_mode
from ...modes import active_transforms, determinism, inference_used, special
from ..dispatch.graph_recording import record
from ..parameter import Parameter
from ..tensor import Tensor, wrap
from .repeated_layouts import CALLS, F32, MOST, Launches, ndarray

new = object.__new__
_grad_enabled = grad_mode.get
#: classes of arguments whose values are parts of keys
_PLAIN = frozenset((int, bool, str, tuple, type(None)))
_TENSORS = frozenset((Tensor, Parameter))
_VOID = np.dtype("V1").num

#: the value of `special` while a call is observed that may take its shortest way
observing = [0]


def repeated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that applies operators to its arguments, with launches for calls that come again and again."""
    launches = Launches()
    find = launches.single.get
    observed: dict[Any, Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not SMALL_KERNELS[0] or special[0] or inference_used[0] or active_transforms[0] or determinism[0]:
            return function(*args, **kwargs)
        parts: list[Any] = []
        tensors: list[Any] = []
        arrays: list[Any] = []
        requires_grad = False
        for x in (*args, *kwargs.values()) if kwargs else args:
            kind = x.__class__
            if kind in _TENSORS:
                a = x._array
                if a.__class__ is not ndarray or a.size > MOST:
                    return function(*args, **kwargs)
                tensors.append(x)
                arrays.append(a)
                parts += (a.dtype.num, a.shape, a.strides)
                if x._requires_grad:
                    requires_grad = True
            elif kind is float:
                parts.append(x or repr(x))
            elif kind in _PLAIN:
                parts += (kind, x)
            else:
                return function(*args, **kwargs)
        if kwargs:
            parts += kwargs
        key = tuple(parts)
        try:
            known = find(key)
        except TypeError:  # a list in a tuple
            return function(*args, **kwargs)
        if known:
            launch, op, inputs, params = known
            if requires_grad and inputs is None and _grad_enabled():
                return function(*args, **kwargs)
            array = launch(*arrays)
            if array is None:  # an index is out of range
                return function(*args, **kwargs)
            if array.__class__ is tuple:
                return op([wrap(each) for each in array])  # the class of the tuple
            result = new(Tensor)
            result._array = array
            result._requires_grad = False
            result._output_nr = 0
            result._node = result._grad = result._counter = result._base = result._accumulator = None
            if requires_grad and _grad_enabled():
                record(op, [x if i < 0 else tensors[i] for i, x in inputs], [result], params)
            return result
        if known is False or _VOID in parts:
            return function(*args, **kwargs)
        if launches.count(key) != CALLS - 1:
            result = function(*args, **kwargs)
            launches.consider(F32, key, tuple(arrays), _arrays(result), _prepared, observed.pop(key, None))
            return result
        from .call_observation import observe

        result, seen = observe(function, args, kwargs, tensors, observing)
        observed.clear()
        observed[key] = seen
        launches.consider(F32, key, tuple(arrays), _arrays(result), _prepared, seen)
        return result

    return call


def _arrays(result: Any) -> Any:
    """The array, or the arrays, of a result."""
    if isinstance(result, tuple):
        return tuple([getattr(each, "_array", None) for each in result])
    return getattr(result, "_array", None)


def _prepared(call: Any) -> Any:
    """(launch, operator or class of the results, inputs, parameters) of an observed call; None if it has no launch."""
    from .call_observation import prepared

    return prepared(call)


__all__ = ["observing", "repeated"]
