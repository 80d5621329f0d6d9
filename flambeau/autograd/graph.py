"""`torch.autograd.graph`: nodes and edges by hand, and hooks on what the graph saves and sends."""

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
    """A block in which each tensor that the graph saves is packed, and unpacked whenever it is read.

    What `pack_hook(tensor)` returns, of whatever kind, is kept instead of the tensor;
    `unpack_hook` is given it and must return a tensor with the same content. The innermost
    block's hooks alone are called, with grad mode off in `pack_hook`; they act in this thread only.
    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks

    Args:
        pack_hook: called with a tensor when a node saves it. It may not write to it.
        unpack_hook: called with what `pack_hook` returned, in backward or when `grad_fn._saved_*` is read.

    Raises:
        RuntimeError: on entry, where hooks are disabled.

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
    """A block in which what the graph saves is kept on the CPU, and copied back to its device for backward.

    Tensors lie on the CPU already; they are kept as they are, or copied if the memory is to be pinned.
    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu

    Args:
        pin_memory: copy to memory from which devices copy asynchronously.
        device_type: the kind of device for which memory is pinned.

    >>> import flambeau as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> torch.autograd.grad(y, x)
    (tensor(6.),)
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack_to_cpu(tensor: Any) -> tuple[Any, Any]:
            return tensor.device, tensor.detach().clone() if pin_memory else tensor.cpu()

        def unpack_from_cpu(packed: tuple[Any, Any]) -> Any:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A block in which saved-tensor hooks are an error: for what cannot work with them.

    Args:
        error_message: the message of the error.

    Raises:
        RuntimeError: on entry, if hooks are on; inside, when some are put on.

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
    """Where in the graph a tensor's gradient is computed: its node and output number.

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
    """Count a write that autograd did not see, so that backward refuses what it saved before.

    Args:
        tensor: one tensor, or several. Tensors of inference mode, which count nothing, are passed over.

    Raises:
        RuntimeError: something else was given.

    >>> import flambeau as torch
    >>> x = torch.zeros(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    given: Iterable[Any] = (tensor,) if isinstance(tensor, layer.tensor_class) else tensor
    if not isinstance(given, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for x in given:
        if not isinstance(x, layer.tensor_class):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        if not x._inference:
            x._bump_version()


def region_activation_memory_budget(budget: float) -> Any:
    """Set how much a compiled region may save for backward.

    Raises:
        RuntimeError: always: nothing is compiled here.

    >>> import flambeau as torch
    >>> torch.autograd.graph.region_activation_memory_budget(0.5)
    Traceback (most recent call last):
    RuntimeError: torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile region; \
it has no effect in eager mode.
    """
    raise RuntimeError("torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile "
                       "region; it has no effect in eager mode.")


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn of a gradient made on another stream than its leaf's. There is one stream: it never is."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Whether nodes that a device's graph capture left on another stream move to it. There are no captures."""


__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "region_activation_memory_budget", "register_multi_grad_hook",
           "save_on_cpu", "saved_tensors_hooks", "set_override_stale_capture_stream",
           "set_warn_on_accumulate_grad_stream_mismatch"]
