"""Pinned memory of the host: which tensors are in it."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ...backends.bit_views import resolve
from ...backends.cuda_devices import current_runtime
from ...backends.numpy.memory import owner
from ..tensor import Tensor, wrap

_pinned: dict[int, weakref.ref[Any]] = {}


def pin(x: Tensor) -> Tensor:
    """A copy of a tensor of the CPU in pinned memory."""
    source = resolve(x._array)
    runtime = current_runtime()
    size = source.size * source.itemsize
    flat = np.empty(size, np.uint8) if runtime is None else runtime.pinned(size)
    array = np.ndarray(source.shape, source.dtype, flat, 0, np.empty_like(source).strides)
    array[...] = source
    whole = owner(array)
    key = id(whole)
    _pinned[key] = weakref.ref(whole, lambda _: _pinned.pop(key, None))
    out: Tensor = wrap(array)
    return out


def is_pinned(x: Tensor) -> bool:
    """Whether a tensor of the CPU is in pinned memory."""
    if not isinstance(x._array, np.ndarray):
        return False
    whole = owner(x._array)
    found = _pinned.get(id(whole))
    return found is not None and found() is whole


__all__ = ["is_pinned", "pin"]
