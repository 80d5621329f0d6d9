"""Adadelta: steps scaled by the running averages of squared gradients and of squared steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .arithmetic import advance, number, run
from .optimizer import FirstOrder, check_lr, check_not_negative, new_step, signed, zeros_like

__all__ = ["Adadelta"]


def rule(xp: Any, param: Any, grad: Any, square: Any, steps: Any, lr: float, rho: float, eps: float,
         weight_decay: float, maximize: bool) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.addcmul_(xp.mul_(square, rho), grad, grad, value=1 - rho)
    scale = xp.sqrt(xp.add(square, eps))
    delta = xp.mul(xp.div(xp.sqrt(xp.add(steps, eps)), scale), grad)
    xp.addcmul_(xp.mul_(steps, rho), delta, delta, value=1 - rho)
    xp.add_(param, delta, alpha=-lr)


class Adadelta(FirstOrder):
    """p ← p - lr · Δ with Δ = √(u + eps) / √(v + eps) · g, v and u the running averages of g² and Δ².

    Args:
        lr: scales the step.
        rho: how much of the averages stays.
        weight_decay: λ, which adds λ · p to g.
    """

    later_options = (*FirstOrder.later_options, ("capturable", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
                 maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                                  "maximize": maximize, "capturable": capturable, "foreach": foreach,
                                  "differentiable": differentiable})

    def _update(self, group: dict[str, Any]) -> None:
        for param, grad, state in self._with_grad(group):
            if not state:
                state.update(step=new_step(), square_avg=zeros_like(param), acc_delta=zeros_like(param))
            advance(state["step"])
            run(rule, param, grad, (state["square_avg"], state["acc_delta"]), number(group["lr"]),
                group["rho"], group["eps"], group["weight_decay"], group["maximize"],
                differentiable=group["differentiable"])
