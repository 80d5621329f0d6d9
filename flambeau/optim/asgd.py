"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import functions as fn
from .arithmetic import advance, number, remember, remembered, run
from .optimizer import FirstOrder, check_lr, check_not_negative, new_step, signed, zeros_like

__all__ = ["ASGD"]


def rule(xp: Any, param: Any, grad: Any, average: Any, eta: float, lambd: float, mu: float,
         weight_decay: float, maximize: bool) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.mul_(param, 1 - lambd * eta)
    xp.add_(param, grad, alpha=-eta)
    if mu != 1:
        xp.add_(average, xp.mul(xp.sub(param, average), mu))
    else:
        xp.copy_(average, param)


class ASGD(FirstOrder):
    """Gradient descent with falling steps, keeping in state "ax" the average of the parameters from step t0 on.

    Args:
        lambd: how fast the parameters decay.
        alpha: the power by which the steps fall.
        t0: when averaging starts.
        weight_decay: λ, which adds λ · p to g.
    """

    later_options = (*FirstOrder.later_options, ("capturable", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0,
                                  "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "capturable": capturable})

    def _update(self, group: dict[str, Any]) -> None:
        lr, lambd = number(group["lr"]), group["lambd"]
        for param, grad, state in self._with_grad(group):
            if not state:
                dtype = new_step().dtype
                state.update(step=new_step(), eta=fn.tensor(float(lr), dtype=dtype), mu=fn.ones((), dtype=dtype),
                             ax=zeros_like(param))
            step = advance(state["step"])
            run(rule, param, grad, (state["ax"],), remembered(state["eta"]), lambd, remembered(state["mu"]),
                group["weight_decay"], group["maximize"], differentiable=group["differentiable"])
            remember(state["eta"], lr / ((1 + lambd * lr * step) ** group["alpha"]))
            remember(state["mu"], 1 / max(1, step - group["t0"]))
