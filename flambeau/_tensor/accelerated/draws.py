"""Random numbers of devices in tensors that exist: fills, samples with given parameters, and dropout."""

from __future__ import annotations

from typing import Any

from ...backends.cuda_devices import current_runtime
from ...devices import device
from ...engine.grad_mode import grad_mode, no_grad
from ...engine.nodes.node import Node, next_number
from ...engine.tensor_interface import layer
from ..dispatch.handlers import handlers
from ..tensor import Tensor, wrap
from .calls import HANDLERS, Implementation
from .execution import as_device_tensors, kernel_view, launch, on_device
from .generators import check_generator, default_generator
from .transfers import host_array


def _fill(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method that fills a tensor: with numbers of its device's generator."""
    x = args[0]
    check_generator(kwargs.get("generator"), x._device)
    if not on_device(x) or kwargs.get("generator") is not None:
        return NotImplemented
    return implementation(*args, **{**kwargs, "generator": default_generator(x._device.index)})


def _on_host(x: Any) -> Any:
    """A value with a copy in the host's memory in place of a tensor in the device's."""
    return wrap(host_array(x)) if on_device(x) else x


def _sample(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of tensors of parameters: its numbers are drawn by the generator of their device."""
    if on is None:
        return NotImplemented
    check_generator(kwargs.get("generator"), on)
    given = dict(kwargs)
    out = given.pop("out", None)
    if given.get("generator") is None and not any(hasattr(x, "get_offset") for x in args):
        given["generator"] = default_generator(on.index)
    show = kernel_view if current_runtime().computes_on_host else _on_host
    operands = [show(x) for x in args]
    result = launch("sample", on, [*args, *kwargs.values()], lambda: implementation(
        *operands, **{name: show(value) for name, value in given.items()}))
    made = as_device_tensors([result], on, args)[0]
    differentiable = next((x for x in args if isinstance(x, Tensor) and x._requires_grad), None)
    if differentiable is not None and grad_mode.get() and made._array.dtype.kind in "fV":
        made = made + 0 * differentiable
    if out is not None:
        if out._array.shape != made._array.shape:
            out.resize_(made._array.shape)
        return out.copy_(made)
    return made


class NativeDropoutBackward0(Node):
    """The node of dropout on a device, which saves which elements are kept."""

    __slots__ = ("kept", "scale")

    def __init__(self, x: Tensor, kept: Tensor, scale: float) -> None:
        self.edges = (layer.gradient_edge(x),)
        self.edge_outputs = (x._output_nr,) if x._output_nr else None
        self.extra = self.run = self.outputs = None
        self.seq = next_number()
        self.kept, self.scale = kept, scale

    def vjp(self, cotangents: Any, tensors: bool, wanted: Any = None) -> Any:
        """The gradient of the elements that are kept, scaled."""
        g = cotangents if isinstance(cotangents, Tensor) else wrap(cotangents)
        scaled = g * self.kept * self.scale
        return (scaled if tensors else scaled._array,)


def _vector_size(x: Tensor) -> int:
    """The elements that a thread of PyTorch's kernel loads at once."""
    a = x._array
    if not a.flags.c_contiguous:
        return 1
    size = 16 // a.itemsize if a.itemsize < 4 else 4
    pointer = HANDLERS["torch.Tensor.data_ptr"](None, None, (x,), {})  # type: ignore[arg-type]
    while size > 1 and (a.size % size or pointer % (size * a.itemsize)):
        size //= 2
    return size


def dropout(x: Tensor, p: float) -> Tensor:
    """Dropout of a tensor in a device's memory, with the numbers of PyTorch's fused kernel.

    Args:
        p: the probability to set an element to zero, in (0, 1).
    """
    on = x._device
    keep = 1 - p
    engine = default_generator(on.index).engine
    scale = 1 / keep
    drawn = engine.dropout(x._array.size, keep, _vector_size(x)).reshape(x._array.shape)
    kept = wrap(current_runtime().upload(drawn, on.index, blocking=False))
    with no_grad():
        out = x.detach() * kept * scale
    if grad_mode.get() and x._requires_grad:
        out._requires_grad, out._node, out._output_nr = True, NativeDropoutBackward0(x, kept, scale), 0
    return out


def host_parameters(generator: Any, x: Tensor) -> tuple[Any, Any]:
    """A generator, or the default one of a tensor's device, and the tensor's elements in the host's memory."""
    if not on_device(x):
        return generator, x._array
    check_generator(generator, x._device)
    return default_generator(x._device.index) if generator is None else generator, host_array(x)


handlers.host_parameters = host_parameters
HANDLERS.update({
    **{f"torch.Tensor.{name}": _fill for name in ("uniform_", "normal_", "bernoulli_", "exponential_", "random_",
                                                  "cauchy_", "geometric_", "log_normal_")},
    **{f"{space}.{name}": _sample for space in ("torch", "torch.Tensor") for name in (
        "bernoulli", "multinomial")},
    **{f"torch.{name}": _sample for name in ("poisson", "binomial", "_standard_gamma", "_sample_dirichlet")},
})
handlers.dropout_on_device = dropout

__all__ = ["NativeDropoutBackward0", "dropout"]
