"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .optimizer import FirstOrder, check_betas, check_lr, check_not_negative, descent_gradient, new_step, zeros_like
from .update_rules import advance_step, apply_update, scalar_value, scale_state

__all__ = ["NAdam", "nadam"]


def rule(xp: Any, param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, lr: float, beta1: float, beta2: float,
         eps: float, weight_decay: float, decoupled: bool, maximize: bool, step: float, mu: float, mu_next: float,
         mu_product: Any) -> None:
    """Update one parameter and its state in place; a tensor `mu_product` is recorded in the graph."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        if decoupled:
            xp.mul_(param, 1 - lr * weight_decay)
        else:
            grad = xp.add(grad, param, alpha=weight_decay)
    xp.lerp_(exp_avg, grad, 1 - beta1)
    xp.addcmul_(xp.mul_(exp_avg_sq, beta2), grad, grad, value=1 - beta2)
    denominator = xp.add(xp.sqrt(xp.div(exp_avg_sq, 1 - beta2**step)), eps)
    if isinstance(mu_product, Tensor):
        xp.addcdiv_(param, grad * (-lr * (1.0 - mu) / (1.0 - mu_product)), denominator, value=1.0)
        xp.addcdiv_(param, exp_avg * ((-lr * mu_next) / (1.0 - mu_product * mu_next)), denominator, value=1.0)
        return
    xp.addcdiv_(param, grad, denominator, value=-lr * (1.0 - mu) / (1.0 - mu_product))
    xp.addcdiv_(param, exp_avg, denominator, value=(-lr * mu_next) / (1.0 - mu_product * mu_next))


def _scaled_product(product: Tensor, mu: float) -> Any:
    """Multiply Πμ by μ in place; its value, or the tensor where gradients flow to it."""
    return product.mul_(mu) if product.requires_grad else scale_state(product, mu)


class NAdam(FirstOrder):
    """NAdam: Adam with Nesterov momentum.

    p ← p - lr · ((1 - μₜ) / (1 - Πμ) · g + μₜ₊₁ / (1 - μₜ₊₁ Πμ) · m) / (√v̂ + eps), with
    μₜ = β₁ · (1 - 0.5 · 0.96^(t · momentum_decay)) at step t and Πμ = μ₁ ⋯ μₜ. m, v and v̂ are those of `Adam`.
    Source: Dozat, "Incorporating Nesterov Momentum into Adam" (2016).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 2e-3).
        betas: β₁ and β₂, each in [0, 1) (default (0.9, 0.999)).
        eps: added to the denominator (default 1e-8).
        weight_decay: λ; adds λ · p to g or, if `decoupled_weight_decay`, multiplies p by 1 - lr · λ (default 0).
        momentum_decay: exponent of the momentum schedule μ (default 4e-3).
        decoupled_weight_decay: as in `AdamW`.
        foreach, capturable: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: a hyperparameter is out of range.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.NAdam([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.8944])
    """

    added_options = (*FirstOrder.added_options, ("capturable", False), ("decoupled_weight_decay", False))

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

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        step = new_step()
        state.update(step=step, mu_product=fn.ones((), dtype=step.dtype), exp_avg=zeros_like(param),
                     exp_avg_sq=zeros_like(param))

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        decay = group["momentum_decay"]
        for param, grad, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)
            step = advance_step(state["step"])
            mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
            mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
            product = _scaled_product(state["mu_product"], mu)
            apply_update(rule, param, grad, (state["exp_avg"], state["exp_avg_sq"]), scalar_value(group["lr"]), beta1,
                         beta2, group["eps"], group["weight_decay"], group["decoupled_weight_decay"], group["maximize"],
                         step, mu, mu_next, product, differentiable=group["differentiable"])


def nadam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
          mu_products: list[Tensor], state_steps: list[Tensor], decoupled_weight_decay: bool = False,
          foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
          has_complex: bool = False, maximize: bool = False, *, beta1: float, beta2: float, lr: Any,
          weight_decay: float, momentum_decay: float, eps: float) -> None:
    """Update lists of parameters and their state in place; see `NAdam`."""
    for param, grad, exp_avg, exp_avg_sq, mu_product, count in zip(
            params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, strict=True):
        step = advance_step(count)
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * momentum_decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * momentum_decay)))
        apply_update(rule, param, grad, (exp_avg, exp_avg_sq), scalar_value(lr), beta1, beta2, eps, weight_decay,
                     decoupled_weight_decay, maximize, step, mu, mu_next, _scaled_product(mu_product, mu),
                     differentiable=differentiable)
