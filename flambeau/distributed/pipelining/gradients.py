"""Gradients of a stage's parameters at the end of a step."""

from __future__ import annotations

from collections.abc import Iterable

from ..._tensor import Tensor
from ..._tensor.shape.joining import cat
from ...engine.grad_mode import no_grad
from ...nn.parallel.distributed import DistributedDataParallel
from ..collectives import all_reduce


@no_grad()
def scale(parameters: Iterable[Tensor], factor: int) -> None:
    """Divide gradients.

    Args:
        parameters: what has them.
        factor: the divisor.
    """
    if factor != 1:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.div_(factor)


@no_grad()
def reduce_accumulated(module: DistributedDataParallel) -> None:
    """Average the gradients that a step without reductions has accumulated.

    Divided backward passes end with gradients of weights from many short passes, which the module's reducer does not
    count.

    Args:
        module: the module; communication hooks are not called.
    """
    gradients: dict[object, list[Tensor]] = {}
    for parameter in module.parameters():
        if parameter.requires_grad and parameter.grad is not None:
            gradients.setdefault(parameter.grad.dtype, []).append(parameter.grad)
    for each in gradients.values():
        flat = cat([gradient.reshape(-1) for gradient in each])
        all_reduce(flat, group=module.process_group)
        flat.div_(module.process_group.size())
        for gradient, part in zip(each, flat.split([gradient.numel() for gradient in each]), strict=True):
            gradient.copy_(part.view(gradient.shape))


__all__ = ["reduce_accumulated", "scale"]
