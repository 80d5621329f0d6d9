"""Numbers of tensors with one element on a device: one copy by the driver, for which the host waits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ....backends.cuda_devices.array import DeviceArray
from ....backends.cuda_devices.errors import device_error
from ....backends.numpy.memory import address
from ...parameter import Parameter
from ...tensor import Tensor
from .conditions import only_devices

_TENSORS = frozenset((Tensor, Parameter))
_BOXES: dict[np.dtype, Any] = {
    np.dtype(each): getattr(ctypes, f"c_{name}") for each, name in (
        ("f4", "float"), ("f8", "double"), ("i8", "int64"), ("i4", "int32"), ("i2", "int16"), ("i1", "int8"),
        ("u1", "uint8"), ("?", "bool"))}
#: methods of a tensor -> what becomes of its number
READS: dict[str, Callable[[Any], Any] | None] = {
    "torch.Tensor.item": None, "torch.Tensor.__float__": float, "torch.Tensor.__int__": int,
    "torch.Tensor.__bool__": bool}


def number_reader(name: str, runtime: Any) -> Callable[..., Any]:
    """The function that runs such a method, as `entry_points.device_calls` makes; it leaves others to the method."""
    convert, current, driver = READS[name], runtime.current, runtime.driver
    copy, copy_on, wait = driver.cuMemcpyDtoH_v2, driver.cuMemcpyDtoHAsync_v2, driver.cuStreamSynchronize

    def read(implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x = args[0]
        if len(args) > 1 or kwargs or x.__class__ not in _TENSORS or x._array.__class__ is not DeviceArray or (
                not only_devices()):
            return NotImplemented
        a = x._array
        box = _BOXES.get(a.dtype)
        if a.size != 1 or box is None or runtime.captured or current.recording is not None:
            return NotImplemented
        device = a.memory.device.index
        if not current.bound or runtime.count > 1:
            runtime.bind_thread(device)
        found = box()
        stream = current.streams.get(device, 0)
        if stream:
            at = runtime.stream_address(device, stream)
            status = copy_on(ctypes.byref(found), address(a), a.itemsize, at) or wait(at)
        else:
            status = copy(ctypes.byref(found), address(a), a.itemsize)
        if status:
            raise device_error(runtime.describe_error(status))
        runtime.meet_error(device)
        return found.value if convert is None else convert(found.value)

    return read


__all__ = ["READS", "number_reader"]
