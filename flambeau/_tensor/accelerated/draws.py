"""Random numbers of devices in tensors that exist: fills, samples with given parameters, and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.attention_kernels import enabled as enabled_kernels
from ...backends.cuda_devices.array import DeviceArray
from ...devices import device
from ...dtypes import NARROW
from ...engine.grad_mode import grad_mode, no_grad
from ...engine.nodes.node import Node, next_number
from ...engine.tensor_interface import layer
from ...kernels.memory_format import is_dense
from ..dispatch.handlers import handlers
from ..tensor import Tensor, wrap
from . import sampling
from .calls import HANDLERS, Implementation
from .execution import on_device
from .factories import normal_of_size
from .generators import check_generator, default_generator


def _fill(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method that fills a tensor: with numbers of its device's generator."""
    x = args[0]
    check_generator(kwargs.get("generator"), x._device)
    if not on_device(x) or kwargs.get("generator") is not None:
        return NotImplemented
    return implementation(*args, **{**kwargs, "generator": default_generator(x._device.index)})


def _sample(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of tensors of parameters: its numbers are drawn by the generator of their device."""
    if on is None:
        return NotImplemented
    check_generator(kwargs.get("generator"), on)
    given = dict(kwargs)
    out = given.pop("out", None)
    if given.get("generator") is None and not any(hasattr(x, "get_offset") for x in args):
        given["generator"] = default_generator(on.index)
    made = implementation(*args, **given)
    if out is not None:
        if out._array.shape != made._array.shape:
            out.resize_(made._array.shape)
        return out.copy_(made)
    return made


def _normal(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`normal`, of tensors of parameters, or of a size."""
    if any(isinstance(x, Tensor) for x in (*args[:2], kwargs.get("mean"), kwargs.get("std"))):
        return _sample(implementation, on, args, kwargs)
    return normal_of_size(implementation, on, args, kwargs)


def _bernoulli(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`bernoulli`, of the probabilities in a tensor or of one number, `p`."""
    p = kwargs.get("p", args[1] if len(args) > 1 else None)
    if on is None or p is None:
        return _sample(implementation, on, args, kwargs)
    filled = layer.functions.empty_like(args[0]).bernoulli_(p, generator=kwargs.get("generator"))
    out = kwargs.get("out")
    return filled if out is None else out.copy_(filled)


def sample(name: str, generator: Any, args: tuple[Any, ...]) -> Any:
    """Samples of a device's generator: what is drawn later (`drawing.Draw`), or an array in the device's memory.

    Args:
        name: of the function in `kernels.random`.
        args: its arguments after the engine; arrays are in the device's memory.
    """
    with no_grad():
        return sampling.SAMPLES[name](generator, *args)


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


def vector_size(a: DeviceArray) -> int:
    """The elements that a thread of PyTorch's kernel loads at once."""
    if not is_dense(a):
        return 1
    size = 16 // a.itemsize
    pointer = HANDLERS["torch.Tensor.data_ptr"](None, None, (wrap(a),), {})  # type: ignore[arg-type]
    while size > 1 and (a.size % size or pointer % (size * a.itemsize)):
        size //= 2
    return size


def dropout(x: Tensor, p: float) -> Tensor:
    """Dropout of a tensor in a device's memory, with the numbers of PyTorch's fused kernel.

    Args:
        p: the probability to set an element to zero, in (0, 1).

    Raises:
        NotImplementedError: the dtype is not floating (PyTorch's text).
    """
    a: Any = x._array
    if a.dtype.kind != "f" and a.dtype not in NARROW:
        raise NotImplementedError(f"\"fused_dropout\" not implemented for '{x.dtype.scalar_name}'")
    keep = 1 - p
    vector = vector_size(a)
    with no_grad():
        ordered = a if vector > 1 or a.flags.c_contiguous else x.detach().contiguous()._array
        made, mask = sampling.dropped(default_generator(x._device.index), ordered, keep, vector)
        out, kept = wrap(made), wrap(mask)
        if ordered is not a and is_dense(a):
            out = layer.functions.empty_like(x.detach()).copy_(out)
    return recorded(x, out, kept, 1 / keep)


def recorded(x: Tensor, out: Tensor, kept: Tensor, scale: float) -> Tensor:
    """The result of dropout, with its node where a graph is recorded.

    Args:
        kept: which elements are.
        scale: by which they are multiplied.
    """
    if grad_mode.get() and x._requires_grad:
        out._requires_grad, out._node, out._output_nr = True, NativeDropoutBackward0(x, kept, scale), 0
    return out


def attention_dropout(weights: Tensor, p: float, query: Tensor, value: Tensor) -> Tensor:
    """Dropout of attention's weights, (batch, heads, queries, keys), as in the kernel that PyTorch chooses.

    Of float32 it is the memory-efficient one, if the heads' sizes are multiples of four; else the weights are an
    intermediate result that is dropped out as any tensor is.

    Args:
        p: the probability to set a weight to zero, in (0, 1).
        query, value: what the weights are computed of, and multiply.
    """
    a: Any = weights._array
    fused = enabled_kernels["mem_efficient"] and a.dtype == np.float32 and a.ndim == 4
    if not fused or query._array.shape[-1] % 4 or value._array.shape[-1] % 4 or not a.size:
        return dropout(weights, p)
    with no_grad():
        made, mask = sampling.attention_weights_dropped(default_generator(weights._device.index), a, p)
    return recorded(weights, wrap(made), wrap(mask), 1 / (1 - p))


def generator_of(generator: Any, x: Tensor) -> Any:
    """The generator that draws for a tensor: a given one, or the default one of its device; None: of the CPU."""
    if not on_device(x):
        return generator
    check_generator(generator, x._device)
    return default_generator(x._device.index) if generator is None else generator


def rrelu_slopes(generator: Any, x: Tensor, lower: float, upper: float) -> Tensor:
    """The slopes of `rrelu` in training, 1 for positive elements."""
    with no_grad():
        a: Any = x._array
        made: Tensor = wrap(sampling.rrelu_slopes(generator_of(generator, x), a, lower, upper))
    return made


handlers.generator_of, handlers.sample_on_device = generator_of, sample
handlers.rrelu_slopes_on_device = rrelu_slopes
HANDLERS.update({
    **{f"torch.Tensor.{name}": _fill for name in ("uniform_", "normal_", "bernoulli_", "exponential_", "random_",
                                                  "cauchy_", "geometric_", "log_normal_")},
    **{f"{space}.{name}": handler for space in ("torch", "torch.Tensor") for name, handler in (
        ("bernoulli", _bernoulli), ("multinomial", _sample))},
    **{f"torch.{name}": _sample for name in ("poisson", "binomial", "_standard_gamma", "_sample_dirichlet")},
    "torch.normal": _normal,
})
handlers.dropout_on_device, handlers.attention_dropout_on_device = dropout, attention_dropout

__all__ = ["NativeDropoutBackward0", "dropout", "recorded", "vector_size"]
