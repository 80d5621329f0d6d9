"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import functions as fn
from .arithmetic import advance, number, run, scale
from .optimizer import FirstOrder, check_betas, check_lr, check_not_negative, new_step, signed, zeros_like

__all__ = ["NAdam"]


def rule(xp: Any, param: Any, grad: Any, average: Any, square: Any, lr: float, beta1: float, beta2: float,
         eps: float, weight_decay: float, decoupled: bool, maximize: bool, step: float, mu: float,
         mu_next: float, mu_product: float) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    if weight_decay != 0:
        if decoupled:
            xp.mul_(param, 1 - lr * weight_decay)
        else:
            grad = xp.add(grad, param, alpha=weight_decay)
    xp.lerp_(average, grad, 1 - beta1)
    xp.addcmul_(xp.mul_(square, beta2), grad, grad, value=1 - beta2)
    scale = xp.add(xp.sqrt(xp.div(square, 1 - beta2**step)), eps)
    xp.addcdiv_(param, grad, scale, value=-lr * (1.0 - mu) / (1.0 - mu_product))
    xp.addcdiv_(param, average, scale, value=(-lr * mu_next) / (1.0 - mu_product * mu_next))


class NAdam(FirstOrder):
    """Adam that steps along a mixture of m and g, mixed by a momentum that grows with the steps.

    Args:
        betas: how much of m and of v stays.
        weight_decay: λ, which adds λ · p to g or, if `decoupled_weight_decay`, shrinks p itself.
        momentum_decay: how fast the momentum grows.
    """

    later_options = (*FirstOrder.later_options, ("capturable", False), ("decoupled_weight_decay", False))

    def __init__(self, params: Iterable[Any], lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "momentum_decay": momentum_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
                                  "foreach": foreach, "capturable": capturable,
                                  "differentiable": differentiable})

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        decay = group["momentum_decay"]
        for param, grad, state in self._with_grad(group):
            if not state:
                state.update(step=new_step(), mu_product=fn.ones((), dtype=new_step().dtype),
                             exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
            step = advance(state["step"])
            mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
            mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
            product = scale(state["mu_product"], mu)
            run(rule, param, grad, (state["exp_avg"], state["exp_avg_sq"]), number(group["lr"]), beta1,
                beta2, group["eps"], group["weight_decay"], group["decoupled_weight_decay"],
                group["maximize"], step, mu, mu_next, product,
                differentiable=group["differentiable"])
