"""RAdam: Adam with a rectified adaptive learning rate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .optimizer import FirstOrder, check_betas, check_lr, check_not_negative, descent_gradient, new_step, zeros_like
from .update_rules import advance_step, apply_update, scalar_value

__all__ = ["RAdam", "radam"]


def rule(xp: Any, param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, lr: float, beta1: float, beta2: float,
         eps: float, weight_decay: float, decoupled: bool, maximize: bool, step: float) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        if decoupled:
            xp.mul_(param, 1 - lr * weight_decay)
        else:
            grad = xp.add(grad, param, alpha=weight_decay)
    xp.lerp_(exp_avg, grad, 1 - beta1)
    xp.addcmul_(xp.mul_(exp_avg_sq, beta2), grad, grad, value=1 - beta2)
    correction = 1 - beta2**step
    update = xp.mul(xp.div(exp_avg, 1 - beta1**step), lr)
    # length of the simple moving average that approximates exp_avg_sq: its limit, and at this step
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * step * (beta2**step) / correction
    if rho > 5.0:
        rectified = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
        denominator = xp.add(xp.sqrt(exp_avg_sq), eps)
        update = xp.mul(xp.mul(update, xp.div(correction**0.5, denominator)), rectified)
    xp.add_(param, update, alpha=-1.0)


class RAdam(FirstOrder):
    """RAdam: Adam with a rectified adaptive learning rate.

    p ← p - lr · r · m̂ / √v̂ if ρₜ > 5, else p ← p - lr · m̂, with ρ∞ = 2 / (1 - β₂) - 1,
    ρₜ = ρ∞ - 2t β₂ᵗ / (1 - β₂ᵗ) and r² = (ρₜ - 4)(ρₜ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρₜ). m̂ and v̂ are those of `Adam`; eps
    is added to √v.
    Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond" (2020).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1e-3).
        betas: β₁ and β₂, each in [0, 1) (default (0.9, 0.999)).
        eps: added to the denominator (default 1e-8).
        weight_decay: λ; adds λ · p to g or, if `decoupled_weight_decay`, multiplies p by 1 - lr · λ (default 0).
        decoupled_weight_decay: as in `AdamW`.
        foreach, capturable: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: a hyperparameter is out of range.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.RAdam([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.7000])
    """

    added_options = (*FirstOrder.added_options, ("capturable", False), ("decoupled_weight_decay", False))

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

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state.update(step=new_step(), exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        for param, grad, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)
            step = advance_step(state["step"])
            apply_update(rule, param, grad, (state["exp_avg"], state["exp_avg_sq"]), scalar_value(group["lr"]), beta1,
                         beta2, group["eps"], group["weight_decay"], group["decoupled_weight_decay"], group["maximize"],
                         step, differentiable=group["differentiable"])


def radam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
          state_steps: list[Tensor], decoupled_weight_decay: bool = False, foreach: bool | None = None,
          differentiable: bool = False, capturable: bool = False, has_complex: bool = False, maximize: bool = False, *,
          beta1: float, beta2: float, lr: Any, weight_decay: float, eps: float) -> None:
    """Update lists of parameters and their state in place; see `RAdam`."""
    for param, grad, exp_avg, exp_avg_sq, count in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
        apply_update(rule, param, grad, (exp_avg, exp_avg_sq), scalar_value(lr), beta1, beta2, eps, weight_decay,
                     decoupled_weight_decay, maximize, advance_step(count), differentiable=differentiable)
