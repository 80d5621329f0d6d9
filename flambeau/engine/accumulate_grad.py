"""Adding a gradient into a leaf's `.grad`, taking the array over where nobody else holds it."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from .. import dtypes
from ..backends.compiled import copied, copied_like
from ..backends.compiled.thresholds import MET
from ..devices import contiguous_format
from ..modes import active_tracer, grad_mode, special
from .compiled_rules import add as add_large
from .deferred_accumulation import Gathered
from .policies import keeps_layout
from .tensor_interface import layer

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
        return a + b if not MET[0] else add_large(a, b)
    except TypeError:
        return dtypes.to_bfloat16(dtypes.widen(a) + dtypes.widen(b))


def is_dense(a: np.ndarray) -> bool:
    """Whether the elements fill a stretch of memory, in whatever order."""
    if a.flags.forc:
        return True
    filled = a.itemsize
    for stride, n in sorted((t, n) for t, n in zip(a.strides, a.shape, strict=True) if n != 1):
        if stride != filled:
            return False
        filled *= n
    return True


def _lies_well(g: np.ndarray, a: np.ndarray) -> bool:
    """Whether a gradient lies in memory as it should: as its leaf where that is dense, else row by row."""
    if a.__class__ is not np.ndarray or not is_dense(a):
        return bool(g.flags.c_contiguous)
    return all(n == 1 or s == t for n, s, t in zip(a.shape, g.strides, a.strides, strict=True)) or not a.size


def _copied(g: Any, variable: Any) -> Any:
    """A gradient's copy, recorded as one, that lies in memory as a gradient of its leaf should."""
    a = variable._array
    if g._array.__class__ is not np.ndarray or not is_dense(a):
        return g.clone(memory_format=contiguous_format)
    return layer.functions.empty_like(variable, dtype=g.dtype).detach().copy_(g)


def accumulate(variable: Any, box: list[Any], tensors: bool, hold: int = 0) -> None:
    """variable.grad += g, in place where `.grad` exists and no graph is being made of it.

    Args:
        variable: a leaf tensor.
        box: its cotangent, alone in a list, so that who calls need not refer to it: an array, or a
            tensor if `tensors`. An array that nobody else refers to becomes the gradient; another is copied.
        hold: how many others refer to the array who shall see what becomes of it.
    """
    g = box.pop()
    if not variable._requires_grad:  # it was told so after the graph was made
        told(variable)
        return
    if variable._node is not None:
        raise RuntimeError("leaf variable has been moved into the graph interior")
    post = variable._post_accumulate_hooks
    with _lock:
        held = variable._grad
        if tensors:
            tracer = active_tracer.get() if special[0] else None
            if tracer is not None:
                tracer.note_entry_grad(variable)
            if held is not None and tracer is not None and not grad_mode.get():
                held.add_(g)  # what a capture sees is what is done without one
            else:
                variable._grad = _copied(g, variable) if held is None else held + g
        elif held is None:
            if (g.__class__ is np.ndarray and sys.getrefcount(g) <= _ALONE + hold and g.base is None and g.flags.owndata
                    and g.flags.writeable and (g.strides == variable._array.strides or _lies_well(g, variable._array)
                                              or not keeps_layout())):
                mine = g
            elif type(g) is not np.ndarray:
                mine = np.asarray(g)
            elif is_dense(variable._array):
                mine = copied_like(g, variable._array)
            else:
                mine = copied(g)
            variable._grad = layer.wrap(mine)
        else:
            target = held._array
            if target.dtype.kind == "V":
                target[...] = add_arrays(target, g)
            elif type(g) is np.ndarray:
                if MET[0]:
                    add_large(target, g, target)
                else:
                    _add(target, g, target)
            elif isinstance(g, Gathered):
                add_large(target, np.asarray(g), target)
            else:
                target[()] = target[()] + g  # scalars: four times as quick as an addition of arrays
            counter = held._counter
            if counter is None:
                held._counter = [1]
            else:
                counter[0] += 1
    if post:
        told(variable)


def converted(g: Any, to: Any, tensors: bool) -> Any:
    """A cotangent in another dtype: a leaf's `grad_dtype`."""
    if tensors:
        return g.to(to)
    return dtypes.cast(np.asarray(g), to.numpy)


def told(variable: Any) -> None:
    """Call the hooks that wait for a leaf's gradient."""
    shown = variable
    for hook in list((variable._post_accumulate_hooks or {}).values()):
        returned = hook(shown)
        if returned is None:
            continue
        if not isinstance(returned, layer.tensor_class):
            raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
        shown = returned
    if shown is not variable:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")
