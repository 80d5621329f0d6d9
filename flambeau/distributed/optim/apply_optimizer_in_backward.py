"""Optimizers that update a parameter as soon as its gradient is complete, in the middle of the backward pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._tensor import Tensor
from ...nn.modules.module import Module
from ...optim.optimizer import Optimizer

__all__: list[str] = []


def _step(param: Any) -> None:
    """Update a parameter, whose gradient is then used up."""
    for optimizer in param._in_backward_optimizers:
        optimizer.step()
    param.grad = None


def _apply_optimizer_in_backward(optimizer_class: type[Optimizer], params: Iterable[Tensor],
                                 optimizer_kwargs: dict[str, Any], register_hook: bool = True) -> None:
    """Let backward passes update parameters, each when its gradient has been accumulated, which is None afterwards.

    `DistributedDataParallel` updates them when the averages over processes are there, at the end of the pass.

    Args:
        optimizer_class: the class of the optimizers, one for each parameter.
        params: the parameters.
        optimizer_kwargs: the optimizers' options.
        register_hook: whether something happens; otherwise, the optimizers are only noted.

    >>> import flambeau as torch
    >>> from flambeau.distributed.optim import _apply_optimizer_in_backward
    >>> x = torch.nn.Parameter(torch.ones(2))
    >>> _apply_optimizer_in_backward(torch.optim.SGD, [x], {"lr": 0.5})
    >>> x.sum().backward()
    >>> x.tolist(), x.grad
    ([0.5, 0.5], None)
    """
    for param in params:
        noted: Any = param
        if not hasattr(noted, "_in_backward_optimizers"):
            noted._in_backward_optimizers, noted._optimizer_classes, noted._optimizer_kwargs = [], [], []
            noted._in_backward_hooks = []
        noted._in_backward_optimizers.append(optimizer_class([param], **optimizer_kwargs))
        noted._optimizer_classes.append(optimizer_class)
        noted._optimizer_kwargs.append(optimizer_kwargs)
        if register_hook and not noted._in_backward_hooks:  # one hook steps all optimizers of a parameter
            noted._in_backward_hooks.append(param.register_post_accumulate_grad_hook(_step))


def _get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """Return the optimizers that update a module's parameters in backward passes, for checkpoints.

    Args:
        module: the module.
    """
    return [each for parameter in module.parameters() for each in getattr(parameter, "_in_backward_optimizers", [])]
