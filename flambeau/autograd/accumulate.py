"""Adding a gradient into a leaf's `.grad`, taking the array over where nobody else holds it."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from .. import dtypes
from .node import layer

_lock = threading.Lock()
_add = np.add


def _references(box: list[Any]) -> int:
    g = box.pop()
    return sys.getrefcount(g)


# What a reference count is when nobody else refers to an array taken from a box, as this Python counts.
# Without the global interpreter lock a count says nothing certain: copy always.
_ALONE = _references([np.empty(1)]) if getattr(sys, "_is_gil_enabled", lambda: True)() else -1


def add_arrays(a: Any, b: Any) -> Any:
    """a + b, in the dtype of `a`, also where NumPy cannot add (bfloat16)."""
    try:
        return a + b
    except TypeError:
        return dtypes.to_bfloat16(dtypes.widen(a) + dtypes.widen(b))


def accumulate(variable: Any, box: list[Any], tensors: bool) -> None:
    """variable.grad += g, in place where `.grad` exists and no graph is being made of it.

    Args:
        variable: a leaf tensor.
        box: its cotangent, alone in a list, so that who calls need not refer to it: an array, or a
            tensor if `tensors`. An array that nobody else refers to becomes the gradient; another is copied.
    """
    g = box.pop()
    post = variable._post_accumulate_hooks
    with _lock:
        held = variable._grad
        if tensors:
            if held is None:
                variable._grad = g if g._requires_grad else g.clone()
            else:
                variable._grad = held + g
        elif held is None:
            if (g.__class__ is np.ndarray and sys.getrefcount(g) <= _ALONE and g.base is None and g.flags.owndata
                    and g.flags.writeable):
                mine = g
            elif type(g) is not np.ndarray:
                mine = np.asarray(g)
            else:
                mine = np.array(g, order="K", copy=True, subok=False)
                if 0 in mine.strides and mine.size > 1:
                    mine = np.ascontiguousarray(mine)
            variable._grad = layer.wrap(mine)
        elif held._requires_grad:
            variable._grad = layer.wrap(add_arrays(held._array, g))
        else:
            target = held._array
            if target.dtype.kind == "V":
                target[...] = add_arrays(target, g)
            elif type(g) is np.ndarray:
                _add(target, g, target)
            else:
                target[()] = target[()] + g  # scalars: four times as quick as an addition of arrays
            counter = held._counter
            if counter is None:
                held._counter = [1]
            else:
                counter[0] += 1
    if post:
        for hook in list(post.values()):
            hook(variable)
