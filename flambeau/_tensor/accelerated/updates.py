"""What is updated in place on a device: parameters by optimizers' rules, running averages of batch norm."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ...backends.compiled.updates import traced_update
from ...backends.cuda_devices import current_runtime, strided_copies
from ...backends.cuda_devices.array import DeviceArray
from ...backends.cuda_devices.launch_recording import LaunchRecording, Unrecordable
from ...codegen.gpu import elementwise
from ...codegen.scalar.scalar_ir import variable
from ...dtypes import NARROW
from ...engine.grad_mode import no_grad
from ...modes import special
from ...runtime.launch import Spec
from ..dispatch.handlers import handlers
from ..tensor import Tensor, wrap
from .execution import as_launch, device_arrays, kernel_view, launch
from .operator_programs import kept_number


def update_on_device(rule: Callable[..., None], tensors: tuple[Any, ...], scalars: tuple[Any, ...],
                     update: Callable[[tuple[Any, ...]], None]) -> bool:
    """Run an optimizer's update of one parameter as one launch; False where it takes operators.

    Args:
        rule: the rule.
        tensors: the parameter, its gradient, and its state; the rule writes to all but the gradient.
        scalars: the rule's numbers and flags.
        update: runs it on the tensors as kernels of the host see them.

    Raises:
        RuntimeError: they are on different devices (PyTorch's text).
    """
    on = tensors[0]._device
    for x in tensors:
        if x is not None and x._device is not on and x._array.ndim:
            raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                               f"{on} and {x._device}!")
    written = [x for i, x in enumerate(tensors) if x is not None and i != 1]
    if current_runtime().computes_on_host:
        operands = tuple(kernel_view(list(tensors)))
        launch(rule.__name__, on, tensors, lambda: update(operands), device_arrays(written))
    elif not _launched(rule, tensors, scalars):
        return False
    for x in written:
        x._bump_version()
    return True


def _launched(rule: Callable[..., None], tensors: tuple[Any, ...], scalars: tuple[Any, ...]) -> bool:
    """Run a rule as one generated kernel; whether there is one."""
    arrays = [x._array for x in tensors if x is not None]
    first = arrays[0]
    if any(each.__class__ is not DeviceArray or each.dtype != first.dtype or each.shape != first.shape
           for each in arrays) or (first.dtype.kind != "f" and first.dtype not in NARROW) or not first.size:
        return False
    if len({(id(each.memory), each.byte_offset) for each in arrays}) < len(arrays):
        return False
    missing = sum(1 << i for i, x in enumerate(tensors) if x is None)
    found = traced_update(rule, first.dtype, len(arrays), missing, scalars)
    if found is None:
        return False
    traced, values = found
    device = first.memory.device.index
    runtime = current_runtime()
    if _numbers[0] is not traced or _numbers[1] != values or _numbers[2] != (device, runtime):
        _numbers[:] = traced, values, (device, runtime), _number_arrays(traced, values, device, runtime)
    numbers = _numbers[3]
    key = (id(traced), id(runtime), device, first.shape, *[each.strides for each in arrays])
    known = _recorded.get(key)
    if known.__class__ is FunctionType and not runtime.captured and special[0] == 1:
        return known(*arrays, *numbers) is not None or _started(traced, arrays, numbers, tensors, rule)
    if known is None:
        if len(_recorded) >= _MOST:
            _recorded.clear()
        _recorded[key] = traced  # which keeps its identity
        return _started(traced, arrays, numbers, tensors, rule)
    if known is traced and runtime.arrays_at_addresses and not runtime.captured:
        with LaunchRecording(runtime, device) as recording:
            _started(traced, arrays, numbers, tensors, rule)
        try:
            _recorded[key] = _kept_alive(recording.launch([*arrays, *numbers], ()), traced)
        except Unrecordable:
            _recorded[key] = False
        return True
    return _started(traced, arrays, numbers, tensors, rule)


def _number_arrays(traced: Any, values: tuple[Any, ...], device: int, runtime: Any) -> list[DeviceArray]:
    """A rule's numbers on a device; those that change from step to step are not kept."""
    of, before, changing = _of_steps.get(id(traced), (None, (), set()))
    if of is traced:
        changing.update(i for i, (x, y) in enumerate(zip(before, values, strict=True)) if x != y)
    else:  # a new rule
        changing = set()
        if len(_of_steps) >= _MOST:
            _of_steps.clear()
    _of_steps[id(traced)] = traced, values, changing
    arrays = [np.array(value).astype(dtype) for value, dtype in zip(values, traced.runner.scalars, strict=True)]
    return [runtime.upload(each, device, blocking=False) if i in changing and not runtime.captured else
            kept_number(each, device) for i, each in enumerate(arrays)]


#: by a traced rule's identity, the rule, its last numbers, and the places of those that have changed
_of_steps: dict[int, tuple[Any, tuple[Any, ...], set[int]]] = {}
#: [a traced rule, its numbers, the device and runtime, these numbers as arrays]: the same for all parameters of a step
_numbers: list[Any] = [None, None, None, []]
#: launches of rules, by the rule and layouts: the traced rule where they came once, False where they are not recorded
_recorded: dict[Any, Any] = {}
_MOST = 4096


def _kept_alive(launch: Callable[..., Any], traced: Any) -> Callable[..., Any]:
    return lambda *arrays, kept=traced: launch(*arrays)


def _started(traced: Any, arrays: list[Any], numbers: list[Any], tensors: tuple[Any, ...], rule: Callable[..., None]
             ) -> bool:
    device = arrays[0].memory.device.index
    outs = [arrays[i] for i in traced.written]
    ins = [*arrays, *numbers]
    launches = elementwise.launches(traced.runner.outputs, [Spec.of(each) for each in outs],
                                    [Spec.of(each) for each in ins])
    launch(rule.__name__, tensors[0]._device, tensors, lambda: strided_copies.start(
        current_runtime(), launches, [(each.memory, each.byte_offset) for each in (*outs, *ins)], device), outs)
    return True


def update_average(average: Tensor, value: Any, momentum: float, factor: float, update: Callable[..., None]) -> None:
    """average <- (1 - momentum) average + momentum factor value, on a device.

    Args:
        value: an array of the device's.
        update: runs it on what kernels of the host see.
    """
    if current_runtime().computes_on_host:
        as_launch("running_average", update, (average, value, momentum, factor), (average,))
        return
    if not _averaged(average, value, momentum, factor):
        with no_grad():
            average.detach().mul_(1 - momentum).add_(wrap(value), alpha=momentum * factor)


def _averaged(average: Tensor, value: Any, momentum: float, factor: float) -> bool:
    """Update a running average by one launch; whether there is one."""
    a: Any = average._array
    runtime = current_runtime()
    if value.__class__ is not DeviceArray or value.shape != a.shape or value.dtype != a.dtype or (
            a.dtype.kind != "f" or a.dtype in NARROW or not a.size):
        return False
    if runtime.current.recording is not None:
        runtime.current.recording.refuse()  # the launch is part of no operator
    device = a.torch_device.index
    numbers = [kept_number(np.array(each, a.dtype), device) for each in (1 - momentum, momentum * factor)]
    ins: list[Any] = [a, value, *numbers]
    before, new, kept, share = (variable(i, a.dtype) for i in range(4))
    launches = elementwise.launches([before * kept + new * share], [Spec.of(a)], [Spec.of(each) for each in ins])
    launch("running_average", average._device, [average, wrap(value)], lambda: strided_copies.start(
        runtime, launches, [(each.memory, each.byte_offset) for each in (a, *ins)], device), [a])
    return True


handlers.update_on_device, handlers.update_average_on_device = update_on_device, update_average

__all__ = ["update_average", "update_on_device"]
