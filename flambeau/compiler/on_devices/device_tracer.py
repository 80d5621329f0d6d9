"""`DeviceTracer`: records the operators of a call whose tensors are in a device's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._tensor.accelerated.operator_programs import promoted_dtypes
from ..._tensor.tensor import Tensor, wrap
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...dtypes import NARROW
from ...engine.grad_mode import no_grad
from ...ir.gpu.lowering.namespace import lower_for_device
from ...ir.graph.value import FLOAT32, Unsupported, Value
from ...ops.declare import Op
from ..tracing import aliasing
from ..tracing.aliasing import Storage
from ..tracing.optimizer_updates import UpdateNamespace, ValueCell
from ..tracing.storage_tracer import LiftedInput
from ..tracing.symbolic_scalars import concrete
from ..tracing.tracer import Tracer
from .narrow_operators import Attentions, attention_gradients, lowered

#: what an array of numbers that the function reads from outside is: arrays of the host of more elements are refused
_MOST_HOST_ELEMENTS = 1


class DeviceTracer(Tracer):
    """Traces this thread; arrays are `DeviceArray`s, or of the host with one element.

    Args:
        device: the index of the device.
    """

    lowered_whole = frozenset()

    def __init__(self, device: int) -> None:
        super().__init__()
        self.device, runtime = device, current_runtime()
        self._attentions: Attentions = {}
        self._namespace = lower_for_device(
            self.graph, None if runtime.computes_on_host else runtime.assertions.address(device))

    @property
    def effects(self) -> list[Value]:
        """Values that are computed although no result needs them: draws, and assertions of ranges."""
        return [*super().effects, *self._namespace.effects]

    def value_of(self, tensor: Any) -> Value:
        """Return the IR value that a tensor holds now; a tensor that is not known is lifted to an input."""
        a = tensor._array
        if a.__class__ is not DeviceArray:
            if a.__class__ is np.ndarray and a.size > _MOST_HOST_ELEMENTS and self.known_value(a) is None:
                raise Unsupported("a tensor of the CPU")
            return super().value_of(tensor)
        return self._storage_of(tensor, a).read(a)

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

    def promoted(self, op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], np.dtype | None]:
        """Return operands in the dtypes that an operator computes in, of which only dtypes are read."""
        return promoted_dtypes(op, inputs, params)

    def trace_update(self, rule: Callable[..., None], param: Any, grad: Any, state: tuple, scalars: tuple,
                     differentiable: bool) -> tuple:
        """Called before an update rule, which computes in float32 for tensors of narrow dtypes."""
        tensors = (param, grad, *state)
        if differentiable or self.failure is not None or param._array.dtype not in NARROW or any(
                t is not None and t._array.dtype not in (param._array.dtype, FLOAT32) for t in tensors):
            return super().trace_update(rule, param, grad, state, scalars, differentiable)
        self.frame_hook.pause()
        try:
            before = [None if t is None else self.graph.cast(self.value_of(t), FLOAT32) for t in tensors]
            cells = [None if value is None else ValueCell(value) for value in before]
            rule(UpdateNamespace(self.graph), *cells, *scalars)
        except (Unsupported, AttributeError, TypeError) as error:
            self.graph_break(f"{rule.__module__.rpartition('.')[2]}'s rule: {error}")
            return tuple(map(concrete, scalars))
        finally:
            self.frame_hook.resume()
        self._write_update(param, state, zip(tensors, cells, before, strict=True))
        return tuple(map(concrete, scalars))

    def lower(self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> list[Value]:
        """Return the IR values of an operator's results; narrow products and attention as GPUs compute them."""
        found = lowered(self.graph, op, inputs, params, self.value_of, self._attentions)
        return super().lower(op, inputs, params, outs) if found is None else found

    def on_rule(self, op: Op, g: Any, saved: Sequence[Any], results: Sequence[Any]) -> None:
        """Called when a derivative rule has run: the gradients of flash attention are its own kernels'."""
        if op.name != "_flash_attention" or self.failure is not None or not isinstance(g, Tensor):
            return
        try:
            operands = tuple([self.value_of(x) for x in saved if isinstance(x, Tensor)])
            found = self._attentions.get(operands)
            if found is not None and g._array.shape == found.out.shape and g._array.dtype == found.out.dtype:
                gradients = attention_gradients(self.graph, operands, self.value_of(g), found)
                for x, value in zip(results, gradients, strict=False):
                    if x is not None:
                        self.bind(x._array, value)
        except Unsupported as error:
            self.graph_break(str(error))

    def advance_step(self, step: Any) -> Any:
        """Increment a step counter; one in the device's memory, which the host must read, breaks the graph."""
        if step._array.__class__ is not DeviceArray:
            return super().advance_step(step)
        self.graph_break("an optimizer's counter of steps is in the device's memory")
        with no_grad():
            return step.add_(1).item()

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
