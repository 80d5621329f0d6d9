"""`DataParallel`, which on a CPU calls its module, and `data_parallel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...engine.grad_mode import is_grad_enabled
from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs


class DataParallel(Module):
    """Data parallelism over CUDA devices; without any, it calls its module.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html

    Args:
        module: the module to run.
        device_ids: CUDA devices; ignored.
        output_device: device of the outputs; ignored.
        dim: the batch dimension; ignored.

    Shape:
        Inputs and outputs: those of `module`.

    >>> import flambeau as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 3))
    >>> model(torch.ones(4, 2)).shape, list(model.state_dict())
    (flambeau.Size([4, 3]), ['module.weight', 'module.bias'])
    """

    _refuses_stateless_calls = "nn.DataParallel module"

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                 dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the wrapped module."""
        return self.module(*inputs, **kwargs)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """Copies of a module on several devices (`nn.parallel.replicate`)."""
        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]) -> Any:
        """Arguments divided among devices (`nn.parallel.scatter`)."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """The results of copies of a module (`nn.parallel.parallel_apply`)."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[:len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Results on one device (`nn.parallel.gather`)."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(module: Module, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                  dim: int = 0, module_kwargs: Any = None) -> NoReturn:
    """Raise RuntimeError: data parallelism needs several accelerators.

    Args:
        module: the module to run.
        inputs: its inputs.
        device_ids: the accelerators.
        output_device: device of the outputs.
        dim: the batch dimension.
        module_kwargs: keyword arguments of the module.
    """
    raise RuntimeError("device type could not be determined")


__all__ = ["DataParallel", "data_parallel"]
