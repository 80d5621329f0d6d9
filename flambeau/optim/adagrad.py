"""Adagrad: updates divided by the root of the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import functions as fn
from .optimizer import FirstOrder, check_fused, check_lr, check_not_negative, descent_gradient, new_step
from .update_rules import advance_step, apply_update, scalar_value

__all__ = ["Adagrad"]


def rule(xp: Any, param: Any, grad: Any, accumulator: Any, clr: float, eps: float, weight_decay: float,
         maximize: bool) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.addcmul_(accumulator, grad, grad, value=1)
    xp.addcdiv_(param, grad, xp.add(xp.sqrt(accumulator), eps), value=-clr)


class Adagrad(FirstOrder):
    """Adagrad: p ← p - lr / (1 + (t - 1) · lr_decay) · g / (√s + eps) at step t, with s ← s + g².

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization"
    (2011).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1e-2).
        lr_decay: decay of the learning rate (default 0).
        weight_decay: λ; adds λ · p to g (default 0).
        initial_accumulator_value: initial value of s (default 0).
        eps: added to the denominator (default 1e-10).
        foreach, fused: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: a hyperparameter is out of range.
        RuntimeError: `fused` together with `foreach` or `differentiable`.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adagrad([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.9000])
    """

    added_options = (*FirstOrder.added_options, ("fused", None))

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
        for param, grad, state in self._params_with_grad(group):
            step = advance_step(state["step"])
            clr = scalar_value(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
            apply_update(rule, param, grad, (state["sum"],), clr, group["eps"], group["weight_decay"],
                         group["maximize"], differentiable=group["differentiable"])
