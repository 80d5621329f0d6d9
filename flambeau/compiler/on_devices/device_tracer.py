"""`DeviceTracer`: records the operators of a call whose tensors are in a device's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._tensor.tensor import wrap
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...ir.graph.value import Unsupported, Value
from ..tracing import aliasing
from ..tracing.aliasing import Storage
from ..tracing.storage_tracer import LiftedInput
from ..tracing.tracer import Tracer
from .narrow_operators import lowered

#: what an array of numbers that the function reads from outside is: arrays of the host of more elements are refused
_MOST_HOST_ELEMENTS = 1


class DeviceTracer(Tracer):
    """Traces this thread; arrays are `DeviceArray`s, or of the host with one element.

    Args:
        device: the index of the device.
    """

    def __init__(self, device: int) -> None:
        super().__init__()
        self.device = device

    def value_of(self, tensor: Any) -> Value:
        """Return the IR value that a tensor holds now; a tensor that is not known is lifted to an input."""
        a = tensor._array
        if a.__class__ is not DeviceArray:
            if a.__class__ is np.ndarray and a.size > _MOST_HOST_ELEMENTS and self.known_value(a) is None:
                raise Unsupported("a tensor of the CPU")
            return super().value_of(tensor)
        storage = self.storages.get(id(aliasing.owner(a)))
        if storage is None:
            storage = self._lift(tensor, a)
        if tensor._requires_grad and tensor._node is None:
            self.note_entry_grad(tensor)
        if tensor._counter is not None:
            self._check_version(tensor)
        return storage.read(a)

    def _lift(self, tensor: Any, a: np.ndarray) -> Storage:
        """Make an array that existed before the call an input of the graph."""
        if a.__class__ is not DeviceArray:
            return super()._lift(tensor, a)
        root = aliasing.owner(a)
        memory = a if aliasing.memory_order(a) is not None and not a.byte_offset else None
        if memory is None:
            raise Unsupported("a view with gaps of a tensor that is no argument")
        storage, _ = aliasing.input_storage(self.graph, memory, self.num_leaves)
        self.lifted.append(LiftedInput(self.num_leaves, tensor, memory, a))
        self.num_leaves += 1
        storage.root = root
        return self._register(root, storage)

    def write(self, target: Any, value: Value) -> None:
        """Record that a tensor was overwritten with an IR value."""
        a = target._array
        if a.__class__ is not DeviceArray:
            super().write(target, value)
            return
        if value.dtype != a.dtype:
            value = self.graph.cast(value, a.dtype)
        if value.shape != a.shape:
            value = self.graph.expand(value, a.shape)
        self.value_of(target)
        self.storages[id(aliasing.owner(a))].write(a, value)

    def lower(self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> list[Value]:
        """Return the IR values of an operator's results; products and attention of narrow dtypes as GPUs compute them."""
        found = lowered(self.graph, op, inputs, params, self.value_of)
        return super().lower(op, inputs, params, outs) if found is None else found

    def ones_like(self, tensor: Any) -> Any:
        """Return a tensor of ones on the device, which is no value of the graph yet."""
        a = tensor._array
        return wrap(current_runtime().upload(np.ones(a.shape, a.dtype), self.device))

    def on_host_copy(self, source: Any, copy: Any) -> None:
        """Called when Python reads the elements of a tensor from a copy, which has the tensor's value."""
        if self.failure is None:
            try:
                self.bind(copy._array, self.value_of(source))
            except Unsupported as error:
                self.graph_break(str(error))

    def on_transfer(self, source: Any, made: np.ndarray) -> None:
        """Called when a tensor's elements were copied to another device: constants may come from the host."""
        if self.failure is not None:
            return
        if made.__class__ is not DeviceArray or source._array.__class__ is DeviceArray:
            self.graph_break("a tensor is copied to another device")
            return
        try:
            self.bind(made, self.value_of(source))
        except Unsupported as error:
            self.graph_break(str(error))


__all__ = ["DeviceTracer"]
