"""How operators on a device are computed: by NVIDIA's libraries, by generated kernels, or by the host on copies.

A runtime whose memory is the host's (`computes_on_host`) runs the host's kernels on it directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...dtypes import can_cast, cast, of
from ...ops.declare import VIEW, Op
from ..dispatch.apply import _apply_operator
from ..tensor import Tensor, wrap
from . import counted, host_copies, operator_programs, products
from .libraries import dispatch as libraries


def device_arrays(values: Sequence[Any]) -> list[DeviceArray]:
    """The arrays among values, and of tensors among them, nested in lists, that are in a device's memory."""
    found: list[DeviceArray] = []
    for x in values:
        if isinstance(x, Tensor):
            if x._array.__class__ is DeviceArray:
                found.append(x._array)
        elif x.__class__ is DeviceArray:
            found.append(x)
        elif x.__class__ is list or x.__class__ is tuple:
            found += device_arrays(x)
    return found


def compute(op: Op, operands: list[Any], params: dict[str, Any], device: int,
            kernel: Callable[[list[Any], dict[str, Any]], Any]) -> Any:
    """The results of an operator.

    Args:
        operands: tensors on the runtime's view of memory, and other inputs.
        device: the index of the device.
        kernel: the host's, given operands and parameters.
    """
    if current_runtime().computes_on_host:
        return kernel(operands, params)
    arrays = device_arrays([*operands, *params.values()])
    if op.kind != VIEW and all(each.size for each in arrays):
        for attempt in (products.run, _by_libraries, counted.run, operator_programs.run):
            results = attempt(op, operands, params, device)
            if results is not NotImplemented:
                return results[0] if op.n_outputs == 1 else results
    return host_copies.on_host(op.name, device, kernel, operands, params, arrays)


def _by_libraries(op: Op, operands: list[Any], params: dict[str, Any], device: int) -> Any:
    return libraries.run(op, operands, params, device, _below)


def _below(op: Op, operands: list[Any], params: dict[str, Any], device: int) -> Any:
    """The results of an operator that another one is computed with."""
    return compute(op, operands, params, device,
                   lambda own, given: _apply_operator(op, own, given, None, None, False))


def compute_inplace(op: Op, operands: list[Any], params: dict[str, Any], device: int,
                    kernel: Callable[[list[Any], dict[str, Any]], Any]) -> None:
    """Write the result of an operator into its first operand; arguments as for `compute`."""
    runtime = current_runtime()
    if runtime.computes_on_host:
        kernel(operands, params)
        return
    target = operands[0]._array
    values = params.get("values")
    if values.__class__ is np.ndarray and values.shape == target.shape and len(operands) == 1:  # random numbers
        runtime.copy_from_host(target, cast(values, target.dtype), False)
        return
    arrays = device_arrays([*operands, *params.values()])
    if all(each.size for each in arrays):
        if operator_programs.run(op, operands, params, device, target) is None:
            return
        results = operator_programs.run(op, operands, params, device)
        if results is not NotImplemented and results[0].shape == target.shape:
            result = results[0]
            if result.dtype != target.dtype and can_cast(of(result.dtype), of(target.dtype)):
                result = operator_programs.run(*_conversion(result, target), device)[0]
            if result.dtype == target.dtype:
                runtime.copy_between(target, result)
                return
    host_copies.on_host(f"{op.name}_", device, kernel, operands, params, arrays, [target])


def _conversion(array: DeviceArray, target: DeviceArray) -> tuple[Op, list[Any], dict[str, Any]]:
    from ...ops.declare import REGISTRY

    return REGISTRY["_to_copy"], [wrap(array)], {"dtype": of(target.dtype), "memory_format": None}


def call(function: Callable[..., Any], operands: list[Any], device: int, writes: Sequence[DeviceArray] = ()) -> Any:
    """Call a function that computes with arrays of the host on what the device has.

    Args:
        writes: the arrays that it writes to.
    """
    if current_runtime().computes_on_host:
        return function(*operands)
    return host_copies.on_host(getattr(function, "__name__", "function"), device, lambda given, _: function(*given),
                               operands, {}, device_arrays(operands), writes)


__all__ = ["call", "compute", "compute_inplace", "device_arrays"]
