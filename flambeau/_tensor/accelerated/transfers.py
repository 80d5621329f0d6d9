"""Copies between devices: `to`, `cuda`, `cpu`, `copy_`, and the node that sends gradients back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.bit_views import resolve
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...backends.sparse_array import SparseArray
from ...devices import CPU, device
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import Node, next_number
from ...engine.tensor_interface import layer
from ...modes import active_tracer, forward_levels, special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.batched_tensor import make_batched
from ..dispatch.forward_mode import set_tangent, tangent_levels, tangent_of
from ..dispatch.handlers import handlers
from ..tensor import INFERENCE, Tensor, wrap


class ToCopyBackward0(Node):
    """The node of a copy to another device: the gradient is copied back, in the dtype of the source."""

    __slots__ = ("dtype", "source")

    def __init__(self, x: Tensor) -> None:
        self.edges = (layer.gradient_edge(x),)
        self.edge_outputs = (x._output_nr,) if x._output_nr else None
        self.extra = self.run = self.outputs = None
        self.seq = next_number()
        self.source, self.dtype = x._device, x.dtype

    def vjp(self, cotangents: Any, tensors: bool, wanted: Any = None) -> Any:
        """The gradient, on the device of the source."""
        g = cotangents if isinstance(cotangents, Tensor) else wrap(cotangents)
        moved = transfer(g, self.source, self.dtype)
        return (moved if tensors else moved._array,)


def host_array(x: Tensor, blocking: bool = True) -> np.ndarray:
    """The elements of a tensor in a device's memory, copied to the host."""
    return current_runtime().download(x._array, blocking)


def transfer(x: Tensor, to: device, dtype: Any = None, memory_format: Any = None, blocking: bool = True) -> Tensor:
    """A copy of a tensor on another device, recorded.

    Args:
        dtype: of the copy; default: that of the tensor.
        blocking: whether the host waits for it.
    """
    if x.__class__ is handlers.batched_class:
        return make_batched(transfer(x._value, to, dtype, memory_format, blocking), x._levels)
    if isinstance(x._array, SparseArray):
        raise NotImplementedError(f"a tensor of layout {x.layout} on {to}: sparse tensors are on the CPU only. Move "
                                  "its dense form, x.to_dense().to(device)")
    if dtype is not None and dtype is not x.dtype and (x._array.__class__ is DeviceArray or dtype.itemsize <= (
            x.dtype.itemsize)):  # converted where fewer bytes are to be copied, or where the kernels are
        converted, dtype = apply(REGISTRY["_to_copy"], [x.detach()], {"dtype": dtype, "memory_format": None}), None
    else:
        converted = x
    runtime = current_runtime()
    a = converted._array
    if a.__class__ is DeviceArray:
        if to is CPU:
            array: Any = runtime.download(a, blocking)
        else:
            dense = a.flags.c_contiguous or not a.flags.forc
            array = runtime.empty(to.index, a.shape, a.dtype, None if dense else a.strides)
            if a.size:
                source = a
                if dense and not a.flags.c_contiguous:
                    source = apply(REGISTRY["clone"], [converted.detach()], {"memory_format": None})._array
                runtime.copy_between(array, source)
    else:
        array = runtime.upload(resolve(a), to.index, blocking)
    if special[0] and (tracer := active_tracer.get()) is not None:
        tracer.on_transfer(converted, array)
    out: Tensor = wrap(array)
    if dtype is not None and dtype is not x.dtype:
        out = apply(REGISTRY["_to_copy"], [out], {"dtype": dtype, "memory_format": None})
    if memory_format is not None and memory_format.name != "preserve_format":
        out = layer.functions.contiguous(out, memory_format=memory_format)
    if grad_mode.get() and x._requires_grad and out._array.dtype.kind in "fcV":
        out._requires_grad, out._node, out._output_nr = True, ToCopyBackward0(x), 0
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    if forward_levels:
        for level in tangent_levels([x]):
            tangent = tangent_of(x, level)
            assert tangent is not None
            set_tangent(out, transfer(tangent, to, dtype, memory_format, blocking), level)
    return out


def copy_between_devices(target: Tensor, source: Tensor) -> None:
    """Write a tensor of another device into a tensor: `target.copy_(source)`."""
    there = target._device
    values = transfer(source.detach(), there, target.dtype)
    if special[0]:
        token = grad_mode.set(False)
        try:
            if there is CPU:
                np.copyto(target._array, np.broadcast_to(values._array, target._array.shape))
            else:
                handlers.write_on_device(REGISTRY["_copy"], [target.detach(), values], {})()
        finally:
            grad_mode.reset(token)


handlers.copy_between_devices, handlers.transfer = copy_between_devices, transfer

__all__ = ["ToCopyBackward0", "copy_between_devices", "host_array", "transfer"]
