"""Functions that read elements, share memory or copy objects, of tensors in a device's memory."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...devices import CPU, device
from ...engine.grad_mode import inference
from ...modes import active_tracer, special
from ..dispatch.handlers import handlers, host_elements
from ..memory.access import TRANSIENT
from ..meta import reserved
from ..tensor import INFERENCE, Tensor, wrap
from . import pinned
from .calls import HANDLERS, Implementation
from .execution import (
    as_device_tensors,
    as_launch,
    below_autograd,
    copy_before_write,
    kernel_view,
    on_device,
)
from .transfers import host_array, transfer

Arguments = tuple[Any, ...]


def _on_host(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """A read of elements: of a copy of the tensor in the host's memory."""
    if not on_device(args[0]):
        return NotImplemented
    copied = wrap(host_array(args[0]))
    if special[0] and (tracer := active_tracer.get()) is not None:
        tracer.on_host_copy(args[0], copied)
        return implementation(copied, *args[1:], **kwargs)
    with below_autograd():
        return implementation(copied, *args[1:], **kwargs)


def _numpy(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`x.numpy()` and `np.asarray(x)`: refused, unless forced."""
    if not on_device(args[0]):
        return NotImplemented
    if kwargs.get("force"):
        return host_array(args[0])
    raise TypeError(f"can't convert {args[0]._device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                    "to host memory first.")


def _compared(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`equal` and `allclose`: a kernel whose result the host waits for."""
    if on is None:
        return NotImplemented
    tensors = [x for x in args[:2] if isinstance(x, Tensor)]
    for x in tensors:
        if x._device is not tensors[0]._device:
            raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, "
                               f"{tensors[0]._device} and {x._device}!")
    runtime = current_runtime()
    runtime.synchronize(on.index, runtime.current_stream(on.index))
    show = kernel_view if runtime.computes_on_host else lambda x: wrap(host_array(x)) if on_device(x) else x
    with below_autograd():
        return implementation(*(show(x) for x in args), **kwargs)


def _deepcopy(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`copy.deepcopy(x)`: tensors that share memory have copies that share memory."""
    x, memo = args
    if not on_device(x):
        return NotImplemented
    found = memo.get(id(x))
    if found is not None:
        return found
    if not x.is_leaf:
        return implementation(x, memo)  # which refuses
    memory = x._array.memory
    whole = memo.get(id(memory))
    if whole is None:
        base: Any = x._array
        while isinstance(base.base, np.ndarray):
            base = base.base
        whole = memo[id(memory)] = copy_before_write(wrap(base))._array
        memo.setdefault(id(memo), []).append(memory)
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    a = x._array
    array = np.ndarray.__new__(DeviceArray, a.shape, a.dtype, whole, a.byte_offset, a.strides)
    out: Tensor = wrap(array, type(x))
    memo[id(x)] = out
    out._requires_grad, out._counter = x._requires_grad, [1]
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    if x._grad is not None:
        out._grad = copy.deepcopy(x._grad, memo)
    for name, value in x.__dict__.items():
        if name not in TRANSIENT:
            out.__dict__[name] = copy.deepcopy(value, memo)
    return out


def _resize(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`x.resize_(...)`: within its memory if that suffices, else in new memory."""
    x = args[0]
    if not on_device(x):
        return NotImplemented
    if x._requires_grad and not inference.get():
        raise RuntimeError("cannot resize variables that require grad")
    a = x._array
    with below_autograd():
        stand_in = wrap(reserved(a.shape, a.dtype))
        shape = implementation(stand_in, *args[1:], **kwargs)._array
    if shape.shape == a.shape:
        return x
    memory, needed = a.memory, a.byte_offset + shape.nbytes
    base: Any = a
    while isinstance(base.base, np.ndarray):
        base = base.base
    if needed > memory.nbytes:
        runtime = current_runtime()
        new = runtime.empty(x._device.index, (needed,), np.dtype(np.uint8))
        if memory.nbytes:
            runtime.copy_between(new[:memory.nbytes], base)
        base = new
        while isinstance(base.base, np.ndarray):
            base = base.base
    x._array = np.ndarray.__new__(DeviceArray, shape.shape, a.dtype, base, a.byte_offset, shape.strides)
    x._storage = None
    x._bump_version()
    return x


def _resize_as(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`x.resize_as_(other)`: by `resize_`, of the host's stand-in for shapes and formats."""
    x, other = args[0], args[1] if len(args) > 1 else kwargs["other"]
    if not on_device(x):
        return NotImplemented
    other = wrap(reserved(other._array.shape, x._array.dtype))
    return _resize(lambda stand_in, **named: implementation(stand_in, other, **named), on, (x,), {
        name: value for name, value in kwargs.items() if name != "other"})


def _share_memory(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`x.share_memory_()`: devices' memory can be shared as it is."""
    return args[0] if on_device(args[0]) else NotImplemented


def _is_shared(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    return True if on_device(args[0]) else NotImplemented


def _on_cpu_only(name: str) -> Any:
    def refuse(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
        if on_device(args[0]):
            raise TypeError(f"{name} is only implemented on CPU tensors")
        return NotImplemented

    return refuse


def _pin(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`x.pin_memory()`: a copy in memory that devices copy from and to while the host goes on."""
    x = args[0]
    if x._device is not CPU:
        raise RuntimeError(f"cannot pin '{x.type()}' only dense CPU tensors can be pinned")
    return x if pinned.is_pinned(x) else pinned.pin(x)


def _is_pinned(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    return args[0]._device is CPU and pinned.is_pinned(args[0])


def _record_stream(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`x.record_stream(s)`: the memory is used again only after what the stream does then."""
    x, stream = args
    if not on_device(x):
        return NotImplemented
    block = x._array.memory.block
    if block is not None:
        block.uses.add(current_runtime().number_of(stream.device_index, stream.stream_id))
    return None


def _data_ptr(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """The device's address of the first element."""
    x = args[0]
    if not on_device(x):
        return NotImplemented
    memory = x._array.memory
    return 0 if memory.segment is None else memory.segment.address + memory.offset + x._array.byte_offset


def _scatter(in_place: bool) -> Any:
    """`scatter` with the deprecated `reduce=`, which has no derivative: one kernel."""
    def run(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
        if on is None or kwargs.get("reduce") is None:
            return NotImplemented
        given = {name: kernel_view(value) for name, value in kwargs.items()}
        result = as_launch("scatter_reduce", lambda *operands: implementation(*operands, **given), args,
                           args[:1] if in_place else ())
        if in_place:
            args[0]._bump_version()
            return args[0]
        return as_device_tensors([result], on, args)[0]

    return run


def _embedding_bag(implementation: Implementation, on: device | None, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """`embedding_bag`: indices and offsets are read by the host, which makes the bags."""
    if on is None:
        return NotImplemented
    weight, indices, offsets, *rest = args
    results = implementation(weight, *(wrap(host_elements(x)) for x in (indices, offsets)), *rest, **kwargs)
    return tuple(x if on_device(x) else transfer(x, on) for x in results)


HANDLERS.update({
    "torch.embedding_bag": _embedding_bag,
    **dict.fromkeys(("torch.scatter", "torch.Tensor.scatter"), _scatter(False)),
    "torch.Tensor.scatter_": _scatter(True),
    **{f"torch.Tensor.{name}": _on_host for name in (
        "item", "tolist", "__bool__", "__float__", "__int__", "__index__", "__complex__", "__format__", "is_nonzero")},
    "torch.is_nonzero": _on_host,
    **{f"torch.Tensor.{name}": _numpy for name in ("numpy", "__array__")},
    **{f"{space}.{name}": _compared for space in ("torch", "torch.Tensor") for name in ("equal", "allclose")},
    "torch.Tensor.__deepcopy__": _deepcopy, "torch.Tensor.resize_": _resize,
    **dict.fromkeys(("torch.resize_as_", "torch.Tensor.resize_as_"), _resize_as),
    "torch.Tensor.share_memory_": _share_memory, "torch.Tensor.is_shared": _is_shared,
    **{f"torch.Tensor.{name}": _on_cpu_only(name) for name in ("apply_", "map_", "map2_")},
    "torch.Tensor.pin_memory": _pin, "torch.Tensor.is_pinned": _is_pinned,
    "torch.Tensor.record_stream": _record_stream, "torch.Tensor.data_ptr": _data_ptr,
})
handlers.download = host_array

__all__ = ["HANDLERS"]
