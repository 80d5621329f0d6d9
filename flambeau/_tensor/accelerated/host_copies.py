"""Kernels of the host on copies of a device's arrays: for operators that have no kernel on the device.

The host waits for the device, computes, and copies the results back. Arrays that share memory are copied as one, so
that views, in-place kernels and results that are views of operands keep their meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray, device_array
from ...backends.numpy.memory import address
from ..tensor import Tensor, wrap

#: operators -> how often the host has computed them, for tests and the curious
computed: Counter[str] = Counter()
_BYTE = np.dtype(np.uint8)


class HostCopies:
    """Copies of arrays of a device in the host's memory.

    Args:
        arrays: the arrays that the kernel may use.
        device: the device of the results.
    """

    def __init__(self, arrays: Sequence[DeviceArray], device: int) -> None:
        self.device = device
        spans: dict[int, tuple[Any, int, int]] = {}
        for each in arrays:
            if not each.size:  # it may begin past the end of its block
                continue
            first, last = _span(each)
            memory, low, high = spans.get(id(each.memory), (each.memory, first, last))
            spans[id(each.memory)] = memory, min(low, first), max(high, last)
        bases = {id(each.memory): base_of(each) for each in arrays}
        self._copies: dict[int, tuple[Any, int, np.ndarray]] = {}
        for key, (memory, low, high) in spans.items():
            part = device_array(memory, (high - low,), _BYTE, None, low)
            self._copies[key] = bases[key], low, current_runtime().download(part)

    def view(self, array: DeviceArray) -> np.ndarray:
        """The copy of an array."""
        if not array.size:
            return np.empty(array.shape, array.dtype)
        _, low, copy = self._copies[id(array.memory)]
        return np.ndarray(array.shape, array.dtype, copy, array.byte_offset - low, array.strides)

    def operand(self, x: Any) -> Any:
        """A value with copies in place of what is in the device's memory, also in lists."""
        if isinstance(x, Tensor):
            return wrap(self.view(x._array)) if x._array.__class__ is DeviceArray else x
        if x.__class__ is DeviceArray:
            return self.view(x)
        if x.__class__ is list or x.__class__ is tuple:
            return x.__class__(self.operand(each) for each in x)
        return x

    def write_back(self, arrays: Sequence[DeviceArray]) -> None:
        """Copy what the kernel wrote to the device."""
        for each in arrays:
            if each.size:
                current_runtime().copy_from_host(each, self.view(each), True)

    def result(self, array: Any) -> DeviceArray:
        """A result on the device: a view of an operand, or memory of its own."""
        array = np.asarray(array)
        begin = address(array) if array.size else 0
        for base, low, copy in self._copies.values():
            first = address(copy) if copy.size else 0
            if array.size and first <= begin < first + copy.size:
                return np.ndarray.__new__(DeviceArray, array.shape, array.dtype, base, low + begin - first,
                                          array.strides)
        result: DeviceArray = current_runtime().upload(array, self.device)
        return result


def base_of(array: DeviceArray) -> Any:
    """The array that stands for the whole block, of which views are made."""
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base


def _span(array: DeviceArray) -> tuple[int, int]:
    """The bytes of the block from the first to the last element."""
    low = high = array.byte_offset
    for n, s in zip(array.shape, array.strides, strict=True):
        reach = (n - 1) * s if array.size else 0
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + (array.itemsize if array.size else 0)


def on_host(name: str, device: int, function: Callable[..., Any], operands: list[Any], params: dict[str, Any],
            arrays: Sequence[DeviceArray], writes: Sequence[DeviceArray] = ()) -> Any:
    """Run a kernel of the host: its results, arrays of the device.

    Args:
        name: the operator's.
        function: called with operands and parameters.
        arrays: all arrays of the device among them.
        writes: those that it writes to.
    """
    computed[name] += 1
    copies = HostCopies(arrays, device)
    given = {key: copies.operand(value) for key, value in params.items()}
    result = function([copies.operand(x) for x in operands], given)
    copies.write_back(writes)
    for key, value in given.items():  # `saved`: what the kernel keeps for the backward pass
        if value.__class__ is list:
            params[key].extend(copies.result(each) if isinstance(each, np.ndarray) else each
                               for each in value[len(params[key]):])
    if isinstance(result, (list, tuple)):
        return [copies.result(x._array if isinstance(x, Tensor) else x) for x in result]
    return result if result is None else copies.result(result._array if isinstance(result, Tensor) else result)


__all__ = ["HostCopies", "base_of", "computed", "on_host"]
