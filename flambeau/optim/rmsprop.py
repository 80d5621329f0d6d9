"""RMSprop: updates divided by the root of a running average of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .optimizer import FirstOrder, check_lr, check_not_negative, descent_gradient, new_step, zeros_like
from .update_rules import advance_step, apply_update, scalar_value

__all__ = ["RMSprop", "rmsprop"]


def rule(xp: Any, param: Any, grad: Any, square_avg: Any, grad_avg: Any, buffer: Any, lr: float, alpha: float,
         eps: float, weight_decay: float, momentum: float, maximize: bool) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    xp.addcmul_(xp.mul_(square_avg, alpha), grad, grad, value=1 - alpha)
    if grad_avg is not None:
        xp.lerp_(grad_avg, grad, 1 - alpha)
        denominator = xp.sqrt(xp.addcmul(square_avg, grad_avg, grad_avg, value=-1))
    else:
        denominator = xp.sqrt(square_avg)
    denominator = xp.add(denominator, eps)
    if buffer is not None:
        xp.addcdiv_(xp.mul_(buffer, momentum), grad, denominator, value=1)
        xp.add_(param, buffer, alpha=-lr)
    else:
        xp.addcdiv_(param, grad, denominator, value=-lr)


class RMSprop(FirstOrder):
    """RMSprop: p ← p - lr · g / (√v + eps), with the running average v ← alpha · v + (1 - alpha) · g².

    With momentum: b ← momentum · b + g / (√v + eps) and p ← p - lr · b.
    Source: Hinton, "Neural Networks for Machine Learning", lecture 6e (2012); `centered`: Graves, "Generating Sequences
    with Recurrent Neural Networks" (2013).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1e-2).
        alpha: decay rate of v (default 0.99).
        eps: added to the denominator (default 1e-8).
        weight_decay: λ; adds λ · p to g (default 0).
        momentum: decay rate of b (default 0).
        centered: use the variance estimate v - (running average of g)² in place of v.
        capturable, foreach: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: a hyperparameter is out of range.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.RMSprop([p], lr=0.01)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.9000])
    """

    added_options = (*FirstOrder.added_options, ("momentum", 0), ("centered", False), ("capturable", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0, momentum: float = 0, centered: bool = False, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps,
                                  "centered": centered, "weight_decay": weight_decay, "capturable": capturable,
                                  "foreach": foreach, "maximize": maximize, "differentiable": differentiable})

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state.update(step=new_step(), square_avg=zeros_like(param))
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)

    def _update(self, group: dict[str, Any]) -> None:
        momentum, centered = group["momentum"], group["centered"]
        for param, grad, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)
            advance_step(state["step"])
            grad_avg = state["grad_avg"] if centered else None
            buffer = state["momentum_buffer"] if momentum > 0 else None
            apply_update(rule, param, grad, (state["square_avg"], grad_avg, buffer), scalar_value(group["lr"]),
                         group["alpha"], group["eps"], group["weight_decay"], momentum, group["maximize"],
                         differentiable=group["differentiable"])


def rmsprop(params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor], grad_avgs: list[Tensor],
            momentum_buffer_list: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
            maximize: bool = False, differentiable: bool = False, capturable: bool = False, has_complex: bool = False,
            *, lr: Any, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool) -> None:
    """Update lists of parameters and their state in place; see `RMSprop`."""
    for i, (param, grad, square, count) in enumerate(zip(params, grads, square_avgs, state_steps, strict=True)):
        advance_step(count)
        state = (square, grad_avgs[i] if centered else None, momentum_buffer_list[i] if momentum > 0 else None)
        apply_update(rule, param, grad, state, scalar_value(lr), alpha, eps, weight_decay, momentum, maximize,
                     differentiable=differentiable)
