"""Adam: updates from running averages of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .optimizer import FirstOrder, check_betas, check_fused, check_lr, descent_gradient, new_step, zeros_like
from .update_rules import advance_step, apply_update, scalar_value

__all__ = ["Adam", "adam"]


def rule(xp: Any, param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any, lr: float, beta1: float,
         beta2: float, eps: float, weight_decay: float, decoupled: bool, maximize: bool, step: float) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        if decoupled:
            xp.mul_(param, 1 - lr * weight_decay)
        else:
            grad = xp.add(grad, param, alpha=weight_decay)
    xp.lerp_(exp_avg, grad, 1 - beta1)
    xp.addcmul_(xp.mul_(exp_avg_sq, beta2), grad, grad, value=1 - beta2)
    # bias correction: both averages start at zero
    step_size = lr / (1 - beta1**step)
    correction = (1 - beta2**step) ** 0.5
    if max_exp_avg_sq is not None:
        xp.maximum_(max_exp_avg_sq, exp_avg_sq)
        exp_avg_sq = max_exp_avg_sq
    denominator = xp.add_(xp.div_(xp.sqrt(exp_avg_sq), correction), eps)
    xp.addcdiv_(param, exp_avg, denominator, value=-step_size)


class Adam(FirstOrder):
    """Adam: p ← p - lr · m̂ / (√v̂ + eps), with running averages m of g and v of g².

    m ← β₁ m + (1 - β₁) g, v ← β₂ v + (1 - β₂) g²; m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ) correct the bias of their
    start at 0, at step t.
    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015); `amsgrad`: Reddi, Kale and Kumar, "On
    the Convergence of Adam and Beyond" (2018).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1e-3).
        betas: β₁ and β₂, each in [0, 1) (default (0.9, 0.999)).
        eps: added to the denominator (default 1e-8).
        weight_decay: λ; adds λ · p to g or, if `decoupled_weight_decay`, multiplies p by 1 - lr · λ (default 0).
        amsgrad: use the maximum of all v so far in place of v.
        foreach, capturable, fused: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.
        decoupled_weight_decay: as in `AdamW`.

    Raises:
        ValueError: a hyperparameter is out of range, or a tensor of more than one element.
        RuntimeError: `fused` together with `foreach` or `differentiable`.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adam([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.9000], requires_grad=True)
    """

    added_options = (*FirstOrder.added_options, ("amsgrad", False), ("capturable", False), ("fused", None),
                     ("decoupled_weight_decay", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None,
                 decoupled_weight_decay: bool = False) -> None:
        check_lr(lr, foreach, capturable)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if not any(all(isinstance(beta, kind) for beta in betas[:2]) for kind in (float, Tensor)):  # no integers either
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if not capturable and foreach:
                    raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                    "maximize": maximize, "foreach": foreach, "capturable": capturable,
                    "differentiable": differentiable, "fused": fused,
                    "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state.update(step=new_step(), exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)

    def _update(self, group: dict[str, Any]) -> None:
        differentiable = group["differentiable"]
        lr = group["lr"] if differentiable else scalar_value(group["lr"])
        beta1, beta2 = group["betas"] if differentiable else map(scalar_value, group["betas"])
        for param, grad, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)
            max_exp_avg_sq = state["max_exp_avg_sq"] if group["amsgrad"] else None
            step = advance_step(state["step"])
            apply_update(rule, param, grad, (state["exp_avg"], state["exp_avg_sq"], max_exp_avg_sq), lr, beta1, beta2,
                         group["eps"], group["weight_decay"], group["decoupled_weight_decay"], group["maximize"], step,
                         differentiable=differentiable)


def adam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
         max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
         capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
         grad_scale: Tensor | None = None, found_inf: Tensor | None = None, has_complex: bool = False,
         decoupled_weight_decay: bool = False, *, amsgrad: bool, beta1: Any, beta2: Any, lr: Any, weight_decay: float,
         eps: float, maximize: bool) -> None:
    """Update lists of parameters and their state in place; see `Adam`."""
    if not differentiable:
        lr, beta1, beta2 = scalar_value(lr), scalar_value(beta1), scalar_value(beta2)
    for i, (param, grad, exp_avg, exp_avg_sq, count) in enumerate(
            zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)):
        state = (exp_avg, exp_avg_sq, max_exp_avg_sqs[i] if amsgrad else None)
        apply_update(rule, param, grad, state, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize,
                     advance_step(count), differentiable=differentiable)
