"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .optimizer import FirstOrder, check_lr, check_not_negative, descent_gradient, new_step, zeros_like
from .update_rules import advance_step, apply_update, read_state, scalar_value, set_state_value

__all__ = ["ASGD", "asgd"]


def rule(xp: Any, param: Any, grad: Any, ax: Any, eta: float, lambd: float, mu: float, weight_decay: float,
         maximize: bool) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.mul_(param, 1 - lambd * eta)
    xp.add_(param, grad, alpha=-eta)
    if mu != 1:
        xp.add_(ax, xp.mul(xp.sub(param, ax), mu))
    else:
        xp.copy_(ax, param)


class ASGD(FirstOrder):
    """Averaged SGD: p ← (1 - lambd · η) · p - η · g, and the average ax ← ax + μ · (p - ax).

    After step t, η = lr / (1 + lambd · lr · t)^alpha and μ = 1 / max(1, t - t0). The average is state "ax".
    Source: Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging" (1992).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1e-2).
        lambd: decay rate of p (default 1e-4).
        alpha: exponent of the decay of η (default 0.75).
        t0: step at which averaging starts (default 1e6).
        weight_decay: λ; adds λ · p to g (default 0).
        foreach, capturable: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: `lr` or `weight_decay` is negative.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.ASGD([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.7000])
    """

    added_options = (*FirstOrder.added_options, ("capturable", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0,
                                  "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "capturable": capturable})

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        step = new_step()
        state.update(step=step, eta=fn.tensor(float(scalar_value(group["lr"])), dtype=step.dtype),
                     mu=fn.ones((), dtype=step.dtype), ax=zeros_like(param))

    def _update(self, group: dict[str, Any]) -> None:
        lr, lambd = scalar_value(group["lr"]), group["lambd"]
        for param, grad, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)
            step = advance_step(state["step"])
            apply_update(rule, param, grad, (state["ax"],), read_state(state["eta"]), lambd, read_state(state["mu"]),
                         group["weight_decay"], group["maximize"], differentiable=group["differentiable"])
            set_state_value(state["eta"], lr / ((1 + lambd * lr * step) ** group["alpha"]))
            set_state_value(state["mu"], 1 / max(1, step - group["t0"]))


def asgd(params: list[Tensor], grads: list[Tensor], axs: list[Tensor], mus: list[Tensor], etas: list[Tensor],
         state_steps: list[Tensor], foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
         capturable: bool = False, has_complex: bool = False, *, lambd: float, lr: Any, t0: float, alpha: float,
         weight_decay: float) -> None:
    """Update lists of parameters and their state in place; see `ASGD`."""
    lr = scalar_value(lr)
    for param, grad, ax, mu, eta, count in zip(params, grads, axs, mus, etas, state_steps, strict=True):
        step = advance_step(count)
        apply_update(rule, param, grad, (ax,), read_state(eta), lambd, read_state(mu), weight_decay, maximize,
                     differentiable=differentiable)
        set_state_value(eta, lr / ((1 + lambd * lr * step) ** alpha))
        set_state_value(mu, 1 / max(1, step - t0))
