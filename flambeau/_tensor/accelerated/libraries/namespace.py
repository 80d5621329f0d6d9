"""The namespace `xp` over arrays of a device: primitives by functions of libraries, other operators as for tensors.

Declarations whose primitives are here run on it as on arrays of the host, and so do these primitives themselves: their
products, triangles and sums are operators, which take the paths of all operators on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....backends.cuda_devices import current_runtime
from ....backends.cuda_devices.array import DeviceArray, device_array
from ....backends.cuda_devices.strided_copies import start
from ....codegen.gpu import elementwise
from ....codegen.scalar.scalar_ir import constant, variable
from ....ops.declare import REGISTRY, VIEW, Op
from ....runtime.launch import Spec
from ...dispatch.array_kernels import kernel_of
from ...tensor import Tensor, wrap

#: a function of an operator, operands, parameters and the index of a device
Compute = Callable[[Op, list[Any], dict[str, Any], int], Any]
#: name of a primitive -> its function of the namespace, arrays and parameters
PRIMITIVES: dict[str, Callable[..., Any]] = {}


def primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: the function, of the namespace and the primitive's arguments, is the primitive of its name."""
    PRIMITIVES[function.__name__] = function
    return function


class DeviceNamespace:
    """`xp` over arrays of one device: operands and results are `DeviceArray`s, for use within `Runtime.launch`.

    Args:
        device: the device's index.
        compute: the results of an operator, given operands, parameters and the index of the device.
    """

    def __init__(self, device: int, compute: Compute) -> None:
        self.device, self._compute = device, compute

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = PRIMITIVES.get(name)
        if function is not None:
            def call(*args: Any, **params: Any) -> Any:
                return function(self, *args, **params)
        else:
            op = REGISTRY[name]

            def call(*args: Any, **params: Any) -> Any:
                return self._operator(op, args, params)
        setattr(self, name, call)
        return call

    def _operator(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """An operator by its declaration's name, its parameters by name, or by position after the inputs."""
        if len(args) > len(op.inputs):
            names = [name for name in op.params if name not in params]
            params = {**params, **dict(zip(names, args[len(op.inputs):], strict=False))}
            args = args[:len(op.inputs)]
        if op.kind == VIEW:
            return kernel_of(op)(*args, **params)
        operands = [wrap(each) if each.__class__ is DeviceArray else each for each in args]
        result = self._compute(op, operands, params, self.device)
        return tuple(map(_array, result)) if isinstance(result, (list, tuple)) else _array(result)

    # ----- memory -----

    def empty(self, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> DeviceArray:
        """A new array."""
        return current_runtime().empty(self.device, tuple(shape), np.dtype(dtype), strides)

    def column_major(self, a: DeviceArray, batch: Sequence[int] | None = None) -> DeviceArray:
        """A copy as a batch (batch, m, n) of column-major matrices.

        Args:
            batch: the dimensions before the matrix that the array is broadcast to.
        """
        shape = (*(a.shape[:-2] if batch is None else batch), *a.shape[-2:])
        rows = self.empty((*shape[:-2], shape[-1], shape[-2]), a.dtype)
        copied = rows.swapaxes(-1, -2)
        if copied.size:
            current_runtime().copy_between(copied, np.broadcast_to(a, shape, subok=True))
        return rows.reshape(-1, shape[-1], shape[-2]).swapaxes(-1, -2)

    def copy(self, a: DeviceArray) -> DeviceArray:
        """A row-major copy."""
        copied = self.empty(a.shape, a.dtype)
        if a.size:
            current_runtime().copy_between(copied, a)
        return copied

    def fill(self, a: DeviceArray, number: complex) -> None:
        """Write a number over all elements."""
        for part, value in zip(parts(a) if a.dtype.kind == "c" else (a,), (number.real, number.imag), strict=False):
            self._elementwise(part, [], constant(float(value) if part.dtype.kind == "f" else int(value), part.dtype))

    def scale(self, a: DeviceArray, factor: float) -> None:
        """Multiply all elements by a real number, in place."""
        for part in ((a,) if a.dtype.kind != "c" else parts(a)):
            self._elementwise(part, [part], variable(0, part.dtype) * constant(factor, part.dtype))

    def conjugate(self, a: DeviceArray) -> DeviceArray:
        """Conjugate complex numbers in place; the array."""
        if a.dtype.kind == "c":
            self.scale(parts(a)[1], -1.0)
        return a

    def _elementwise(self, out: DeviceArray, operands: Sequence[DeviceArray], node: Any) -> None:
        if not out.size:
            return
        specs = [Spec(each.shape, each.strides, each.dtype) for each in (out, *operands)]
        start(current_runtime(), elementwise.launches([node], specs[:1], specs[1:]),
              [(each.memory, each.byte_offset) for each in (out, *operands)], self.device)


def parts(a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The real and the imaginary parts of complex numbers, views."""
    kind, size = np.dtype(a.dtype.char.lower()), a.itemsize // 2
    real, imaginary = (device_array(a.memory, a.shape, kind, a.strides, a.byte_offset + offset)
                       for offset in (0, size))
    return real, imaginary


def _array(x: Any) -> Any:
    return x._array if isinstance(x, Tensor) else x


__all__ = ["PRIMITIVES", "Compute", "DeviceNamespace", "parts", "primitive"]
