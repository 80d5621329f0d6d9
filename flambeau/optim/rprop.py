"""Resilient backpropagation: steps that depend on the signs of the gradients alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import functions as fn
from .arithmetic import advance, number, run
from .optimizer import FirstOrder, check_lr, new_step, signed, zeros_like

__all__ = ["Rprop"]


def rule(xp: Any, param: Any, grad: Any, previous: Any, size: Any, smaller: float, larger: float, least: float,
         most: float, maximize: bool) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    product = xp.mul(grad, previous)
    # two like signs: go faster; unlike: too far, go slower and not at all this time
    factor = xp.where(product > 0, larger, xp.where(product < 0, smaller, xp.where(product == 0, 1.0, product)))
    xp.clamp_(xp.mul_(size, factor), least, most)
    grad = xp.where(product < 0, 0.0, grad)
    xp.addcmul_(param, xp.sign(grad), size, value=-1)
    xp.copy_(previous, grad)


class Rprop(FirstOrder):
    """p ← p - s · sign(g), with a step s for each element that grows while the sign stays, and shrinks else.

    Args:
        lr: the first step.
        etas: the factors to shrink and to grow by.
        step_sizes: the least and the largest step.
    """

    later_options = (*FirstOrder.later_options, ("capturable", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable,
                                  "capturable": capturable})

    def _update(self, group: dict[str, Any]) -> None:
        for param, grad, state in self._with_grad(group):
            if not state:
                lr = float(number(group["lr"]))
                state.update(step=new_step(), prev=zeros_like(param),
                             step_size=fn.full_like(grad, complex(lr, lr) if param.is_complex() else lr))
            advance(state["step"])
            run(rule, param, grad, (state["prev"], state["step_size"]), *group["etas"],
                *group["step_sizes"], group["maximize"], differentiable=group["differentiable"])
