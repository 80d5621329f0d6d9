"""Adadelta: updates scaled by running averages of squared gradients and squared updates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .optimizer import FirstOrder, check_lr, check_not_negative, descent_gradient, new_step, zeros_like
from .update_rules import advance_step, apply_update, scalar_value

__all__ = ["Adadelta", "adadelta"]


def rule(xp: Any, param: Any, grad: Any, square_avg: Any, acc_delta: Any, lr: float, rho: float, eps: float,
         weight_decay: float, maximize: bool) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.addcmul_(xp.mul_(square_avg, rho), grad, grad, value=1 - rho)
    denominator = xp.sqrt(xp.add(square_avg, eps))
    delta = xp.mul(xp.div(xp.sqrt(xp.add(acc_delta, eps)), denominator), grad)
    xp.addcmul_(xp.mul_(acc_delta, rho), delta, delta, value=1 - rho)
    xp.add_(param, delta, alpha=-lr)


class Adadelta(FirstOrder):
    """Adadelta: p ← p - lr · Δ, with Δ = √(u + eps) / √(v + eps) · g.

    v ← rho · v + (1 - rho) · g², and then u ← rho · u + (1 - rho) · Δ²; both start at 0.
    Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1).
        rho: decay rate of u and v, in [0, 1] (default 0.9).
        eps: added under both roots (default 1e-6).
        weight_decay: λ; adds λ · p to g (default 0).
        foreach, capturable: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: a hyperparameter is out of range.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adadelta([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.9997])
    """

    added_options = (*FirstOrder.added_options, ("capturable", False))

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

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state.update(step=new_step(), square_avg=zeros_like(param), acc_delta=zeros_like(param))

    def _update(self, group: dict[str, Any]) -> None:
        for param, grad, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)
            advance_step(state["step"])
            apply_update(rule, param, grad, (state["square_avg"], state["acc_delta"]), scalar_value(group["lr"]),
                         group["rho"], group["eps"], group["weight_decay"], group["maximize"],
                         differentiable=group["differentiable"])


def adadelta(params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor], acc_deltas: list[Tensor],
             state_steps: list[Tensor], capturable: bool = False, foreach: bool | None = None,
             differentiable: bool = False, has_complex: bool = False, *, lr: Any, rho: float, eps: float,
             weight_decay: float, maximize: bool) -> None:
    """Update lists of parameters and their state in place; see `Adadelta`."""
    for param, grad, square, delta, count in zip(params, grads, square_avgs, acc_deltas, state_steps, strict=True):
        advance_step(count)
        apply_update(rule, param, grad, (square, delta), scalar_value(lr), rho, eps, weight_decay, maximize,
                     differentiable=differentiable)
