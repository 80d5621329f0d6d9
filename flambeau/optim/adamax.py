"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .optimizer import FirstOrder, check_betas, check_lr, check_not_negative, descent_gradient, new_step, zeros_like
from .update_rules import advance_step, apply_update, scalar_value

__all__ = ["Adamax", "adamax"]


def rule(xp: Any, param: Any, grad: Any, exp_avg: Any, exp_inf: Any, lr: float, beta1: float, beta2: float, eps: float,
         weight_decay: float, maximize: bool, step: float) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.lerp_(exp_avg, grad, 1 - beta1)
    xp.maximum_(xp.mul_(exp_inf, beta2), xp.add(xp.abs(grad), eps))
    xp.addcdiv_(param, exp_avg, exp_inf, value=-lr / (1 - beta1**step))


class Adamax(FirstOrder):
    """Adamax: Adam with the infinity norm, p ← p - lr · m̂ / u, with u ← max(β₂ · u, |g| + eps).

    m ← β₁ m + (1 - β₁) g; m̂ = m / (1 - β₁ᵗ) at step t.
    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015), section 7.1.

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 2e-3).
        betas: β₁ and β₂, each in [0, 1) (default (0.9, 0.999)).
        eps: added to |g| (default 1e-8).
        weight_decay: λ; adds λ · p to g (default 0).
        foreach, capturable: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: a hyperparameter is out of range.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adamax([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.9000])
    """

    added_options = (*FirstOrder.added_options, ("capturable", False))

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

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state.update(step=new_step(), exp_avg=zeros_like(param), exp_inf=zeros_like(param))

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        for param, grad, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)
            step = advance_step(state["step"])
            apply_update(rule, param, grad, (state["exp_avg"], state["exp_inf"]), scalar_value(group["lr"]), beta1,
                         beta2, group["eps"], group["weight_decay"], group["maximize"], step,
                         differentiable=group["differentiable"])


def adamax(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_infs: list[Tensor],
           state_steps: list[Tensor], foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
           capturable: bool = False, has_complex: bool = False, *, eps: float, beta1: float, beta2: float, lr: Any,
           weight_decay: float) -> None:
    """Update lists of parameters and their state in place; see `Adamax`."""
    for param, grad, exp_avg, exp_inf, count in zip(params, grads, exp_avgs, exp_infs, state_steps, strict=True):
        apply_update(rule, param, grad, (exp_avg, exp_inf), scalar_value(lr), beta1, beta2, eps, weight_decay, maximize,
                     advance_step(count), differentiable=differentiable)
