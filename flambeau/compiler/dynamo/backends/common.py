"""`torch._dynamo.backends.common`: backends of `compile` that are made of compilers of AOTAutograd's graphs."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flambeau as torch

from ...counters import counters
from ...functorch.aot_autograd import aot_module_simplified
from ...functorch.compilers import _fused, default_decompositions
from ...functorch.partitioners import min_cut_rematerialization_partition

log = logging.getLogger(__name__)


class AotAutograd:
    """A backend: the graph is traced with its gradients, and each part compiled (`aot_module_simplified`).

    Args:
        kwargs: arguments of `aot_module_simplified`.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    def __call__(self, gm: Any, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        """What runs a graph.

        Raises:
            NotImplementedError: AOTAutograd does not support the graph.
        """
        if kwargs:
            log.warning("aot_autograd-based backend ignoring extra kwargs %s", kwargs)
        if callable(self.kwargs.get("decompositions")):
            self.kwargs["decompositions"] = self.kwargs["decompositions"]()
        counters["aot_autograd"]["total"] += 1
        try:
            found = aot_module_simplified(gm, example_inputs, **self.kwargs)
        except Exception:
            counters["aot_autograd"]["not_ok"] += 1
            raise
        counters["aot_autograd"]["ok"] += 1
        return found


def aot_autograd(**kwargs: Any) -> AotAutograd:
    """A backend of `compile` whose compilers get graphs of operators below autograd, forward and backward.

    Args:
        fw_compiler: the compiler of the forward graph.
        bw_compiler: that of the backward graph; by default the same.
        kwargs: further arguments of `aot_module_simplified`.

    >>> import flambeau as torch
    >>> from flambeau.functorch.compile import make_boxed_func
    >>> from flambeau.compiler.dynamo.backends.common import aot_autograd
    >>> def compiler(graph, inputs):
    ...     return make_boxed_func(graph.forward)
    >>> f = torch.compile(lambda x: x.sin() + 1, backend=aot_autograd(fw_compiler=compiler))
    >>> f(torch.zeros(2))
    tensor([1., 1.])
    """
    return AotAutograd(**kwargs)


def mem_efficient_fusion_kwargs(use_decomps: bool) -> dict[str, Any]:
    """The arguments of `aot_autograd` that `memory_efficient_fusion` uses."""
    kwargs: dict[str, Any] = {"fw_compiler": _fused, "bw_compiler": _fused,
                              "partition_fn": min_cut_rematerialization_partition}
    if use_decomps:
        kwargs["decompositions"] = default_decompositions
    return kwargs


def fake_tensor_unsupported(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A backend that gets tensors with elements as examples, as all do here: `fn`."""
    @functools.wraps(fn)
    def wrapper(model: Any, inputs: Any, **kwargs: Any) -> Any:
        return fn(model, inputs, **kwargs)

    return wrapper


def device_from_inputs(example_inputs: Iterable[Any]) -> Any:
    """The device of the first input that has one; the CPU without any."""
    return next((x.device for x in example_inputs if hasattr(x, "device")), torch.device("cpu"))


def dtype_from_inputs(example_inputs: Iterable[Any]) -> Any:
    """The dtype of the first input that has one; float32 without any."""
    return next((x.dtype for x in example_inputs if hasattr(x, "dtype")), torch.float32)


__all__ = ["AotAutograd", "aot_autograd", "device_from_inputs", "dtype_from_inputs", "fake_tensor_unsupported",
           "mem_efficient_fusion_kwargs"]
