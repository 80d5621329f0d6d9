"""Handlers: functions for batched tensors, tangents and fast paths, registered by the modules that import `apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...lazy_modules.registration import LateRegistration
from ...modes import device_memory


class Handlers(LateRegistration):
    """The registered handlers; each is set by the module named next to it, or as said there."""

    batched_class: Any = None  # the class of batched tensors (`batched_tensor`)
    apply_batched: Callable[..., Any]  # `apply` with a batched input (`batching_rules`)
    align_levels: Callable[..., Any]  # the value of a batched tensor with more logical dimensions (`batched_tensor`)
    write_batched: Callable[..., Any]  # an in-place operator with a batched input (`batching_rules`)
    dispatch: Callable[..., Any]  # an operator's outputs by a handler of `__torch_dispatch__` (`overriding.dispatched`)
    dispatched_write: Callable[..., Any]  # the same for an in-place operator (`overriding.dispatched`)
    # for a tensor that a handler of `__torch_dispatch__` wrote to: a copy from before the write; what its node saves
    copy_before_write: Callable[..., Any]
    save_written: Callable[..., None]
    # an operator on tensors in a device's memory; a function that does so in place (`accelerated.execution`)
    run_on_device: Callable[..., Any]
    write_on_device: Callable[..., Any]
    transfer: Callable[..., Any]  # a tensor copied to another device (`accelerated.transfers`)
    copy_between_devices: Callable[..., None]  # the same in place
    download: Callable[..., Any]  # the array of a tensor's elements in the host's memory
    kernel_view: Callable[..., Any]  # a tensor as kernels see it (`accelerated.execution`)
    # a generator, or that of the tensor's device; samples of a device's generator (`accelerated.draws`)
    generator_of: Callable[..., Any]
    sample_on_device: Callable[..., Any]
    rrelu_slopes_on_device: Callable[..., Any]  # a generator or None, input, lower and upper bound -> the slopes
    stand_in: Callable[..., Any]  # a tensor's array, or one of the host with its layout
    as_launch: Callable[..., Any]  # a function of arrays as one launch, which writes to some of its arguments
    write_out_on_device: Callable[..., None]  # a result into an `out=` tensor, of which one is on a device
    uninitialised: Callable[..., Any]  # a new tensor on a device, with the layout of an array (`accelerated.factories`)
    like_on_device: Callable[..., Any]  # a factory that follows a tensor in a device's memory
    copy_on_device: Callable[..., Any]  # a copy of a tensor in a device's memory, without a graph
    # an optimizer's update of a parameter in a device's memory, as one launch
    update_on_device: Callable[..., bool]
    update_average_on_device: Callable[..., None]
    dropout_on_device: Callable[..., Any]  # `accelerated.draws`
    attention_dropout_on_device: Callable[..., Any]  # weights, probability, query, value -> the weights, dropped out
    push_forward: Callable[..., None]  # tangents of the outputs of an operator (`forward_mode`)
    # operators with a sparse input (`sparse.dispatch`): `apply`, in place, and into `out=`
    apply_sparse: Callable[..., Any]
    apply_sparse_inplace: Callable[..., Any]
    write_sparse_out: Callable[..., Any]
    # while a trace records calls of Functions: the result of one, or NotImplemented (`export.script.recording`)
    record_function: Callable[..., Any] | None = None
    fast_path_of: Callable[[Any], Any]  # the fast path of an operator, or None (`fastpath.unary_with_parameters`)


handlers = Handlers()


def host_elements(x: Any) -> Any:
    """The array of a tensor's elements: copied to the host, which waits for them, if they are in a device's memory."""
    a = x._array
    return handlers.download(x) if device_memory.count and getattr(a, "torch_device", None) is not None else a


__all__ = ["Handlers", "handlers", "host_elements"]
