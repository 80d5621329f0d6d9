"""`torch.autograd.graph`: nodes, gradient edges, saved-tensor hooks, multi-grad hooks, version counters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..engine.api import GradientEdge, edge
from ..engine.nodes.node import Node
from ..engine.saved.saved_tensor_mutation import allow_mutation_on_saved_tensors
from ..engine.saved.saved_tensors import disable_hooks, disabled_message, pop_hooks, push_hooks
from ..engine.tensor_interface import layer
from .multi_grad_hook import register_multi_grad_hook


class saved_tensors_hooks:
    """A block in which each tensor that a node saves is packed, and unpacked whenever it is read.

    The node stores the object that `pack_hook(tensor)` returns. `unpack_hook` receives it and must return a tensor of
    the same content. Only the innermost block's hooks are called, in this thread, `pack_hook` with grad mode disabled.
    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks

    Args:
        pack_hook: called with each tensor that a node saves; it must not modify it.
        unpack_hook: called with the packed object, in backward and when `grad_fn._saved_*` is read.

    Raises:
        RuntimeError: on entry, if hooks are disabled.

    >>> import flambeau as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True).tobytes(),
    ...                                               lambda b: torch.frombuffer(bytearray(b), dtype=torch.float32)):
    ...     y = x * x
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        push_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        pop_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A block in which saved tensors are moved to the CPU, and copied back to their device for backward.

    Those of the CPU are saved as they are, or copied if `pin_memory`.
    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu

    Args:
        pin_memory: copy to pinned memory.
        device_type: the device type for which memory is pinned.

    >>> import flambeau as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> torch.autograd.grad(y, x)
    (tensor(6.),)
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack_to_cpu(tensor: Any) -> tuple[Any, Any]:
            if not tensor.is_cuda:
                return tensor.device, tensor.detach().clone() if pin_memory else tensor.cpu()
            return tensor.device, tensor.detach().cpu().pin_memory() if pin_memory else tensor.cpu()

        def unpack_from_cpu(packed: tuple[Any, Any]) -> Any:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A block in which the use of saved-tensor hooks is an error.

    Args:
        error_message: the message of the error.

    Raises:
        RuntimeError: on entry, if hooks are active; inside, when hooks are activated.

    >>> import flambeau as torch
    >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     with torch.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    RuntimeError: no hooks here
    """
    before = disabled_message()
    try:
        disable_hooks(error_message)
        yield
    finally:
        disable_hooks(before, fail_if_on=False)


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The gradient edge of a tensor: the node that receives its gradient, and the output number.

    Raises:
        RuntimeError: the tensor does not require grad.

    >>> import flambeau as torch
    >>> x = torch.tensor(2., requires_grad=True)
    >>> torch.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, number = edge(tensor)
    if node is not None and not node.is_leaf and node.outputs is None:
        extra = node.make_extra()
        extra.output_info = {**(extra.output_info or {}), number: (tensor._array.shape, tensor._array.dtype)}
    return GradientEdge(node, number)


def increment_version(tensor: Any) -> None:
    """Increment a tensor's version after a write that autograd did not see.

    Backward then raises an error for tensors saved before the write.

    Args:
        tensor: one tensor or several. Inference tensors, which have no version, are skipped.

    Raises:
        RuntimeError: an argument is not a tensor.

    >>> import flambeau as torch
    >>> x = torch.zeros(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    tensors: Iterable[Any] = (tensor,) if isinstance(tensor, layer.tensor_class) else tensor
    if not isinstance(tensors, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for x in tensors:
        if not isinstance(x, layer.tensor_class):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        if not x._inference:
            x._bump_version()


def region_activation_memory_budget(budget: float) -> Any:
    """Set the fraction of activations that a compiled region may save for backward; not supported.

    Args:
        budget: 0 to 1.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.autograd.graph.region_activation_memory_budget(0.5)
    Traceback (most recent call last):
    RuntimeError: torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile region; \
it has no effect in eager mode.
    """
    raise RuntimeError("torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile "
                       "region; it has no effect in eager mode.")


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn of a gradient computed on another stream than its leaf's. No effect: the CPU has one stream.

    >>> import flambeau as torch
    >>> torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    """


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Whether nodes of a stale device-graph capture move to the current stream. No effect: the CPU has one stream.

    >>> import flambeau as torch
    >>> torch.autograd.graph.set_override_stale_capture_stream(False)
    """


__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "region_activation_memory_budget", "register_multi_grad_hook",
           "save_on_cpu", "saved_tensors_hooks", "set_override_stale_capture_stream",
           "set_warn_on_accumulate_grad_stream_mismatch"]
