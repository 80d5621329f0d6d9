"""Operators on tensors in a device's memory: the devices are checked, the kernel launched, the result recorded.

The kernel is given tensors on what the runtime shows it of the device's memory (`kernel_view`). Afterwards the operator
is recorded with the tensors themselves, as with a handler of `__torch_dispatch__`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...devices import device
from ...engine.grad_mode import grad_mode, inference
from ...engine.profiler_events import active_timeline
from ...modes import active_profilers, forward_levels
from ...ops.declare import REGISTRY, VIEW, Op
from ..dispatch.apply import _apply_operator
from ..dispatch.array_kernels import kernel_of
from ..dispatch.graph_recording import as_view, record
from ..dispatch.handlers import handlers
from ..dispatch.inplace import apply_inplace, check_fits
from ..dispatch.interception import notify_operator, without_interceptors
from ..overriding.dispatch import no_dispatch
from ..overriding.dispatched import DATA_DEPENDENT
from ..tensor import INFERENCE, Tensor, wrap
from .computing import call, compute, compute_inplace, device_arrays
from .drawing import Draw
from .placement import check_placement, is_elsewhere


def on_device(x: Any) -> bool:
    """Whether a value is a tensor in a device's memory."""
    return isinstance(x, Tensor) and x._array.__class__ is DeviceArray


def kernel_view(x: Any) -> Any:
    """A value as kernels see it: tensors and arrays in a device's memory, also in lists, as the runtime shows them."""
    if isinstance(x, Tensor):
        return wrap(current_runtime().operand(x._array)) if x._array.__class__ is DeviceArray else x
    if x.__class__ is DeviceArray:
        return current_runtime().operand(x)
    if x.__class__ is list or x.__class__ is tuple:
        return x.__class__(kernel_view(each) for each in x)
    return x


@contextmanager
def below_autograd() -> Iterator[None]:
    """A block that computes one operator: no handler, no interceptor and no graph."""
    token, grad = no_dispatch.set(True), grad_mode.set(False)
    try:
        with without_interceptors():
            yield
    finally:
        grad_mode.reset(grad)
        no_dispatch.reset(token)


def launch(name: str, on: device, values: Sequence[Any], kernel: Callable[[], Any],
           writes: Sequence[DeviceArray] = ()) -> Any:
    """Run a kernel on a device; what it returns.

    Args:
        values: what it reads: tensors and others.
        writes: the arrays that it writes to.
    """
    written = {id(each) for each in writes}
    reads = [each for each in device_arrays(values) if id(each) not in written]
    timeline = active_timeline() if active_profilers[0] else None
    with below_autograd():
        if timeline is None or not timeline.open_spans:
            return current_runtime().launch(name, on.index, reads, writes, kernel)
        timeline.pause()  # what the kernel computes with are no operators
        try:
            result, nanoseconds = current_runtime().timed(name, on.index, reads, writes, kernel)
        finally:
            timeline.resume()
        timeline.open_spans[-1].device_time += nanoseconds
        return result


def as_device_tensors(results: Sequence[Any], on: device, values: Sequence[Any]) -> list[Any]:
    """The results of a kernel, tensors or arrays on the runtime's memory, as tensors in a device's memory."""
    runtime = current_runtime()
    arrays = [x._array if isinstance(x, Tensor) else x for x in results]
    adopted = runtime.adopt(arrays, on.index, device_arrays(values))
    operands = {id(each.memory) for each in device_arrays(values)}
    runtime.wrote(on.index, [each for each in adopted if id(each.memory) not in operands])
    return [wrap(each) for each in adopted]


def run_on_device(op: Op, inputs: Sequence[Any], params: dict[str, Any], packed: Any) -> Any:
    """An operator on tensors of which one is in a device's memory, recorded."""
    on = check_placement(op, inputs, params)
    values = [*inputs, *params.values()]
    if op.name in DATA_DEPENDENT or op.forward.__name__ in DATA_DEPENDENT:
        current_runtime().synchronize(on.index, current_runtime().current_stream(on.index))
    outs = _computed(op, inputs, params, on, values)
    if op.kind == VIEW:
        source = inputs[0]
        for i, out in enumerate(outs):
            if out._array.memory is source._array.memory:
                outs[i] = as_view(out, source, multi=op.multi_output_view)
    if grad_mode.get() and op.differentiable and outs and not (op.kind == VIEW and inputs[0]._inference) and any(
            isinstance(x, Tensor) and x._requires_grad for x in inputs):
        record(op, inputs, outs, params, packed=packed)
    if inference.get():
        for out in outs:
            if out._base is None:
                out._inference, out._counter = True, INFERENCE
    notify_operator(op, inputs, params, outs)
    if forward_levels:
        handlers.push_forward(op, inputs, outs, params)
    return outs[0] if op.n_outputs == 1 else outs


def _computed(op: Op, inputs: Sequence[Any], params: dict[str, Any], on: device, values: list[Any]) -> list[Any]:
    """The results of an operator's kernel as new tensors, without a graph."""
    runtime = current_runtime()
    if op.kind == VIEW:
        views = _views(op, inputs, params)
        if views is not None:
            return views
    if op.check is not None:
        op.check(*inputs)
    operands, given = kernel_view(list(inputs)), {name: kernel_view(value) for name, value in params.items()}
    lists = {name: len(value) for name, value in given.items() if value.__class__ is list}
    filled: dict[str, int] = {}

    def kernel() -> list[Any]:
        """The results, then what the kernel keeps for the backward pass, in the parameters that are lists."""
        named = {name: list(value) if name in lists else value for name, value in given.items()}
        result = compute(op, operands, named, on.index or 0,
                         lambda own, params: _apply_operator(op, own, params, None, None, False))
        found = list(result) if op.n_outputs != 1 or isinstance(result, (list, tuple)) else [result]
        for name, count in lists.items():
            filled[name] = len(named[name]) - count
            found += named[name][count:]
        return found

    try:
        results = launch(op.name, on, values, kernel)
    except (IndexError, RuntimeError) as error:
        if not runtime.is_asserted(op.name, error):
            raise
        found = _metadata(op, inputs, params)
        if found is None:
            raise
        runtime.fail(on.index)
        return [wrap(runtime.empty(on.index, each.shape, each.dtype)) for each in found]
    numbers = [i for i, each in enumerate(results) if isinstance(each, (np.ndarray, Tensor))]
    made = dict(zip(numbers, as_device_tensors([results[i] for i in numbers], on, values), strict=True))
    outs = [made.get(i, each) for i, each in enumerate(results)]
    end = len(outs)
    for name, count in reversed(filled.items()):
        params[name].extend(x._array if isinstance(x, Tensor) else x for x in outs[end - count:end])
        end -= count
    return outs[:end]


def _views(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    """The results of a view operator, for which nothing is launched; None where the kernel computes."""
    with below_autograd():
        result = kernel_of(op)(*[x._array if isinstance(x, Tensor) else x for x in inputs], **params)
    arrays = list(result) if op.n_outputs != 1 or isinstance(result, (list, tuple)) else [result]
    return [wrap(each) for each in arrays] if all(each.__class__ is DeviceArray for each in arrays) else None


def _metadata(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """The metadata of the results of an operator whose launch failed; None where no rule tells it."""
    from ..shape.inference import infer

    with below_autograd():
        return infer(op, kernel_view(list(inputs)), {name: kernel_view(value) for name, value in params.items()})


def write_on_device(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Callable[[], None]:
    """A function that writes an in-place operator's result into its first input.

    The target or another input is in a device's memory.
    """
    if op.name == "copy" and is_elsewhere(inputs[1], inputs[0].device):
        return lambda: handlers.copy_between_devices(inputs[0], inputs[1])
    on = check_placement(op, inputs, params, target=inputs[0])

    def write() -> None:
        check_fits(op, list(inputs), params)
        values = params.get("values")
        if values.__class__ is Draw:
            values.into(inputs[0]._array)
            return
        operands, given = kernel_view(list(inputs)), {name: kernel_view(value) for name, value in params.items()}
        runtime = current_runtime()
        try:
            launch(f"{op.name}_", on, [*inputs, *params.values()], lambda: compute_inplace(
                op, operands, given, on.index or 0, lambda own, values: apply_inplace(op, own, values)),
                device_arrays(inputs[:1]))
        except (IndexError, RuntimeError) as error:
            if not runtime.is_asserted(op.name, error):
                raise
            runtime.fail(on.index)

    return write


def copy_before_write(x: Tensor) -> Tensor:
    """A copy of a tensor in a device's memory, from before it is written to."""
    on, a = x._device, x._array
    runtime = current_runtime()
    copied = runtime.empty(on.index, a.shape, a.dtype, None if a.flags.c_contiguous or not a.flags.forc else a.strides)
    runtime.copy_between(copied, a)
    return wrap(copied)


def as_launch(name: str, function: Callable[..., Any], args: Sequence[Any], writes: Sequence[Tensor] = ()) -> Any:
    """Run a function that computes with arrays as one launch; what it returns.

    Args:
        args: its arguments; kernels see those in a device's memory.
        writes: those that it writes to.
    """
    on = next(each.torch_device for each in device_arrays(args))
    operands = [kernel_view(x) for x in args]
    arrays = device_arrays(writes)
    return launch(name, on, args, lambda: call(function, operands, on.index or 0, arrays), arrays)


def write_out_on_device(op: Op, result: Tensor, out: Tensor) -> None:
    """Write a result into an `out=` tensor.

    Raises:
        RuntimeError: they are on different devices (PyTorch's text).
    """
    if result._device is not out._device:
        raise RuntimeError(f"Expected out tensor to have device {result._device}, but got {out._device} instead")
    grad = grad_mode.set(False)
    try:
        if result._array.shape != out._array.shape:
            out.resize_(result._array.shape)
        write_on_device(_COPY, [out.detach(), result.detach()], {})()
    finally:
        grad_mode.reset(grad)


def stand_in(x: Tensor) -> np.ndarray:
    """A tensor's array; of one in a device's memory, an array of the host with its shape, strides and dtype."""
    return x._array.view(np.ndarray) if x._array.__class__ is DeviceArray else x._array


_COPY = REGISTRY["_copy"]
handlers.as_launch, handlers.write_out_on_device = as_launch, write_out_on_device
handlers.run_on_device, handlers.write_on_device = run_on_device, write_on_device
handlers.stand_in = stand_in
handlers.kernel_view, handlers.copy_on_device = kernel_view, copy_before_write

__all__ = ["as_device_tensors", "as_launch", "below_autograd", "copy_before_write", "device_arrays",
           "kernel_view", "launch", "on_device", "run_on_device", "write_on_device"]
