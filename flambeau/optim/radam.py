"""RAdam: Adam that does without its second average until that average means something."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .arithmetic import advance, number, run
from .optimizer import FirstOrder, check_betas, check_lr, check_not_negative, new_step, signed, zeros_like

__all__ = ["RAdam"]


def rule(xp: Any, param: Any, grad: Any, average: Any, square: Any, lr: float, beta1: float, beta2: float,
         eps: float, weight_decay: float, decoupled: bool, maximize: bool, step: float) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    if weight_decay != 0:
        if decoupled:
            xp.mul_(param, 1 - lr * weight_decay)
        else:
            grad = xp.add(grad, param, alpha=weight_decay)
    xp.lerp_(average, grad, 1 - beta1)
    xp.addcmul_(xp.mul_(square, beta2), grad, grad, value=1 - beta2)
    correction = 1 - beta2**step
    update = xp.mul(xp.div(average, 1 - beta1**step), lr)
    # how many gradients the average of squares amounts to, now and at last
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * (beta2**step) / correction
    if length > 5.0:
        rectified = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
        scale = xp.add(xp.sqrt(square), eps)
        update = xp.mul(xp.mul(update, xp.div(correction**0.5, scale)), rectified)
    xp.add_(param, update, alpha=-1.0)


class RAdam(FirstOrder):
    """Adam whose steps are rectified by the variance of the second average; while that has none, plain momentum.

    Args:
        betas: how much of m and of v stays.
        weight_decay: λ, which adds λ · p to g or, if `decoupled_weight_decay`, shrinks p itself.
    """

    later_options = (*FirstOrder.later_options, ("capturable", False), ("decoupled_weight_decay", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "maximize": maximize, "foreach": foreach, "capturable": capturable,
                                  "decoupled_weight_decay": decoupled_weight_decay,
                                  "differentiable": differentiable})

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        for param, grad, state in self._with_grad(group):
            if not state:
                state.update(step=new_step(), exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
            step = advance(state["step"])
            run(rule, param, grad, (state["exp_avg"], state["exp_avg_sq"]), number(group["lr"]), beta1,
                beta2, group["eps"], group["weight_decay"], group["decoupled_weight_decay"],
                group["maximize"], step, differentiable=group["differentiable"])
