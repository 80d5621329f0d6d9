"""Adagrad: updates divided by the root of the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .optimizer import FirstOrder, check_fused, check_lr, check_not_negative, descent_gradient, new_step
from .update_rules import advance_step, apply_update, scalar_value

__all__ = ["Adagrad", "adagrad"]


def rule(xp: Any, param: Any, grad: Any, accumulator: Any, clr: float, eps: float, weight_decay: float,
         maximize: bool) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.addcmul_(accumulator, grad, grad, value=1)
    xp.addcdiv_(param, grad, xp.add(xp.sqrt(accumulator), eps), value=-clr)


def _update_by_sparse(param: Any, grad: Any, accumulator: Any, clr: float, group: dict[str, Any]) -> None:
    """Update the elements of a parameter and its state that a sparse gradient holds."""
    if group["weight_decay"] != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    grad = (-grad if group["maximize"] else grad).coalesce()  # not linear: indices must be unique
    where, values = tuple(grad._indices().unbind(0)), grad._values()
    accumulator.index_put_(where, values.pow(2), accumulate=True)
    steps = values / accumulator[where].sqrt_().add_(group["eps"])
    param.index_put_(where, steps.mul_(-clr), accumulate=True)


def _initial_state(param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
    start = group["initial_accumulator_value"]
    start = complex(start, start) if param.is_complex() else start
    return {"step": new_step(), "sum": fn.full_like(param, start)}


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
                self.state[param] = _initial_state(param, group)

    def share_memory(self) -> None:
        """Move the sums to shared memory."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _update(self, group: dict[str, Any]) -> None:
        for param, grad, state in self._params_with_grad(group):
            if not state:  # it was cleared
                state.update(_initial_state(param, group))
            step = advance_step(state["step"])
            clr = scalar_value(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
            if grad.is_sparse:
                _update_by_sparse(param, grad, state["sum"], clr, group)
                continue
            apply_update(rule, param, grad, (state["sum"],), clr, group["eps"], group["weight_decay"],
                         group["maximize"], differentiable=group["differentiable"])


def adagrad(params: list[Tensor], grads: list[Tensor], state_sums: list[Tensor], state_steps: list[Tensor],
            fused: bool | None = None, grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
            has_sparse_grad: bool = False, foreach: bool | None = None, differentiable: bool = False,
            has_complex: bool = False, *, lr: Any, weight_decay: float, lr_decay: float, eps: float,
            maximize: bool) -> None:
    """Update lists of parameters and sums in place; see `Adagrad`."""
    options = {"weight_decay": weight_decay, "maximize": maximize, "eps": eps}
    for param, grad, total, count in zip(params, grads, state_sums, state_steps, strict=True):
        rate = scalar_value(lr) / (1 + (advance_step(count) - 1) * lr_decay)
        if grad.is_sparse:
            _update_by_sparse(param, grad, total, rate, options)
        else:
            apply_update(rule, param, grad, (total,), rate, eps, weight_decay, maximize, differentiable=differentiable)
