"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .arithmetic import advance, number, run
from .optimizer import FirstOrder, check_betas, check_lr, check_not_negative, new_step, signed, zeros_like

__all__ = ["Adamax"]


def rule(xp: Any, param: Any, grad: Any, average: Any, largest: Any, lr: float, beta1: float, beta2: float,
         eps: float, weight_decay: float, maximize: bool, step: float) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.lerp_(average, grad, 1 - beta1)
    xp.maximum_(xp.mul_(largest, beta2), xp.add(xp.abs(grad), eps))
    xp.addcdiv_(param, average, largest, value=-lr / (1 - beta1**step))


class Adamax(FirstOrder):
    """p ← p - lr · m̂ / u, with m the running average of g and u ← max(beta₂ · u, |g| + eps).

    Args:
        betas: how much of m and of u stays.
        weight_decay: λ, which adds λ · p to g.
    """

    later_options = (*FirstOrder.later_options, ("capturable", False))

    def __init__(self, params: Iterable[Any], lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, capturable: bool = False) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
                                  "capturable": capturable})

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        for param, grad, state in self._with_grad(group):
            if not state:
                state.update(step=new_step(), exp_avg=zeros_like(param), exp_inf=zeros_like(param))
            step = advance(state["step"])
            run(rule, param, grad, (state["exp_avg"], state["exp_inf"]), number(group["lr"]), beta1, beta2,
                group["eps"], group["weight_decay"], group["maximize"], step,
                differentiable=group["differentiable"])
