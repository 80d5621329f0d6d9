"""Adagrad: steps divided by the root of the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import functions as fn
from .arithmetic import advance, number, run
from .optimizer import FirstOrder, check_fused, check_lr, check_not_negative, new_step, signed

__all__ = ["Adagrad"]


def rule(xp: Any, param: Any, grad: Any, total: Any, rate: float, eps: float, weight_decay: float,
         maximize: bool) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.addcmul_(total, grad, grad, value=1)
    xp.addcdiv_(param, grad, xp.add(xp.sqrt(total), eps), value=-rate)


class Adagrad(FirstOrder):
    """p ← p - lr · g / (√Σg² + eps).

    Args:
        lr: the step's length, divided by 1 + (step - 1) · lr_decay.
        weight_decay: λ, which adds λ · p to g.
        initial_accumulator_value: where the sum starts.
    """

    later_options = (*FirstOrder.later_options, ("fused", None))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:
        check_lr(lr)
        check_not_negative(lr_decay=lr_decay, weight_decay=weight_decay,
                           initial_accumulator_value=initial_accumulator_value, epsilon=eps)
        defaults = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                    "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
                    "maximize": maximize, "differentiable": differentiable, "fused": fused}
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                start = group["initial_accumulator_value"]
                start = complex(start, start) if param.is_complex() else start
                self.state[param] = {"step": new_step(), "sum": fn.full_like(param, start)}

    def share_memory(self) -> None:
        """Move the sums to shared memory."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _update(self, group: dict[str, Any]) -> None:
        for param, grad, state in self._with_grad(group):
            step = advance(state["step"])
            rate = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
            run(rule, param, grad, (state["sum"],), rate, group["eps"], group["weight_decay"],
                group["maximize"], differentiable=group["differentiable"])
