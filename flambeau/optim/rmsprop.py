"""RMSprop: steps divided by the root of the running average of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .arithmetic import advance, number, run
from .optimizer import FirstOrder, check_lr, check_not_negative, new_step, signed, zeros_like

__all__ = ["RMSprop"]


def rule(xp: Any, param: Any, grad: Any, square: Any, average: Any, buffer: Any, lr: float, alpha: float,
         eps: float, weight_decay: float, momentum: float, maximize: bool) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.addcmul_(xp.mul_(square, alpha), grad, grad, value=1 - alpha)
    if average is not None:
        xp.lerp_(average, grad, 1 - alpha)
        scale = xp.sqrt(xp.addcmul(square, average, average, value=-1))
    else:
        scale = xp.sqrt(square)
    scale = xp.add(scale, eps)
    if buffer is not None:
        xp.addcdiv_(xp.mul_(buffer, momentum), grad, scale, value=1)
        xp.add_(param, buffer, alpha=-lr)
    else:
        xp.addcdiv_(param, grad, scale, value=-lr)


class RMSprop(FirstOrder):
    """p ← p - lr · g / (√v + eps), with v the running average of g².

    Args:
        alpha: how much of v stays.
        momentum: how much of the last step is taken again.
        centered: divide by an estimate of the variance, v - (running average of g)², instead.
        weight_decay: λ, which adds λ · p to g.
    """

    later_options = (*FirstOrder.later_options, ("momentum", 0), ("centered", False), ("capturable", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0, momentum: float = 0, centered: bool = False, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps,
                                  "centered": centered, "weight_decay": weight_decay, "capturable": capturable,
                                  "foreach": foreach, "maximize": maximize, "differentiable": differentiable})

    def _update(self, group: dict[str, Any]) -> None:
        momentum, centered = group["momentum"], group["centered"]
        for param, grad, state in self._with_grad(group):
            if not state:
                state.update(step=new_step(), square_avg=zeros_like(param))
                if momentum > 0:
                    state["momentum_buffer"] = zeros_like(param)
                if centered:
                    state["grad_avg"] = zeros_like(param)
            advance(state["step"])
            average = state["grad_avg"] if centered else None
            buffer = state["momentum_buffer"] if momentum > 0 else None
            run(rule, param, grad, (state["square_avg"], average, buffer), number(group["lr"]),
                group["alpha"], group["eps"], group["weight_decay"], momentum, group["maximize"],
                differentiable=group["differentiable"])
