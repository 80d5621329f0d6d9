"""Tensors of zeros, ones or no values on a device, made as earlier ones of the same arguments were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import devices, dtypes
from ....backends.cuda_devices.array import DeviceArray
from ....backends.cuda_devices.launch_recording import LaunchRecording, Unrecordable
from ....engine.grad_mode import inference
from ....modes import active_transforms, determinism, filled_memory, inference_used
from ....ops.declare import REGISTRY
from ...parameter import Parameter
from ...tensor import INFERENCE, Tensor, wrap
from .. import operator_programs
from ..calls import called_on_device
from ..execution import below_autograd
from .conditions import only_devices

new = object.__new__
_FILL = REGISTRY["_fill_scalar"]
_TENSORS = frozenset((Tensor, Parameter))
#: factories -> the number that all elements are; None: they are uninitialised
FACTORIES: dict[str, int | None] = {
    f"torch.{name}{like}": fill for like in ("", "_like") for name, fill in (("zeros", 0), ("ones", 1), ("empty", None))
}
_LAYOUTS = 512
#: in place of a launch: the arguments came once; they make no such tensor
_SEEN, _NEVER = object(), object()


class FactoryTable:
    """The launches of one factory by arguments.

    Args:
        name: the factory's.
        runtime: the device's runtime.
    """

    __slots__ = ("_known", "_name", "_runtime")

    def __init__(self, name: str, runtime: Any) -> None:
        self._name, self._runtime = name, runtime
        self._known: dict[Any, Any] = {}

    def call(self, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The tensor of a call; NotImplemented where the factory itself has to run."""
        if not only_devices() or active_transforms[0] or determinism[0] or filled_memory[0]:
            return NotImplemented
        inferring = inference_used[0] and inference.get()
        parts: list[Any] = []
        for x in args:
            if x.__class__ in _TENSORS:
                a = x._array
                if a.__class__ is not DeviceArray:
                    return NotImplemented
                parts += (a.dtype.str, a.dtype.names, a.shape, a.strides, a.memory.device)
            else:
                parts += (x.__class__, x)
        current = self._runtime.current.device
        key = (devices.ambient[0], current, dtypes.get_default_dtype(), *kwargs, *kwargs.values(), None, *parts)
        try:
            known = self._known.get(key)
        except TypeError:  # a list of sizes
            return NotImplemented
        if known.__class__ is tuple:
            result: Any = new(Tensor)
            result._array = known[0]()
            result._requires_grad = known[1]
            result._output_nr = 0
            result._node = result._grad = result._counter = result._base = result._accumulator = None
            if inferring:
                result._inference, result._counter = True, INFERENCE
            return result
        if known is None:
            if len(self._known) >= _LAYOUTS:
                self._known.clear()
            self._known[key] = _SEEN
        elif known is _SEEN:
            self._known[key] = _NEVER
            made = called_on_device(self._name, implementation, args, kwargs)
            if made.__class__ is Tensor and made._array.__class__ is DeviceArray and made._array.size and (
                    made._node is None and made._base is None):
                try:
                    self._known[key] = self._launch(made._array), made._requires_grad
                except Unrecordable:
                    pass
            return made
        return NotImplemented

    def _launch(self, array: DeviceArray) -> Callable[[], DeviceArray]:
        """The launch that makes an array like this one."""
        runtime, device, fill = self._runtime, array.memory.device.index, FACTORIES[self._name]
        if runtime.is_capturing(device, runtime.current_stream(device)):
            raise Unrecordable
        with LaunchRecording(runtime, device) as recording:
            made = runtime.empty(device, array.shape, array.dtype, array.strides)
            if fill is not None:
                with below_autograd():
                    runtime.launch("fill_", device, (), (made,), lambda: operator_programs.run(
                        _FILL, [wrap(made)], {"value": fill}, device, made))
        return recording.launch((), (made,), allocates=fill is None)


__all__ = ["FACTORIES", "FactoryTable"]
