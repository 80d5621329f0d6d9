"""Pinned memory of the host: which tensors are in it."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ...backends.bit_views import resolve
from ...backends.cuda_devices import current_runtime
from ...backends.numpy.memory import owner
from ...engine.grad_mode import grad_mode
from ...engine.nodes.node import Node, next_number
from ...engine.tensor_interface import layer
from ..tensor import Tensor, wrap

_pinned: dict[int, weakref.ref[Any]] = {}


class PinMemoryBackward0(Node):
    """The node of a copy in pinned memory: the gradient is that of the source."""

    __slots__ = ()

    def __init__(self, x: Tensor) -> None:
        self.edges = (layer.gradient_edge(x),)
        self.edge_outputs = (x._output_nr,) if x._output_nr else None
        self.extra = self.run = self.outputs = None
        self.seq = next_number()

    def vjp(self, cotangents: Any, tensors: bool, wanted: Any = None) -> Any:
        """The gradient as it is."""
        return (cotangents,)


def pin(x: Tensor) -> Tensor:
    """A copy of a tensor of the CPU in pinned memory, recorded."""
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
    if grad_mode.get() and x._requires_grad:
        out._requires_grad, out._node, out._output_nr = True, PinMemoryBackward0(x), 0
    return out


def is_pinned(x: Tensor) -> bool:
    """Whether a tensor of the CPU is in pinned memory."""
    if not isinstance(x._array, np.ndarray):
        return False
    whole = owner(x._array)
    found = _pinned.get(id(whole))
    return found is not None and found() is whole


__all__ = ["PinMemoryBackward0", "is_pinned", "pin"]
