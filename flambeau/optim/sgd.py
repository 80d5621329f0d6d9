"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..engine.grad_mode import no_grad
from .optimizer import FirstOrder, check_fused, check_lr, check_not_negative, descent_gradient
from .update_rules import apply_update, apply_updates, scalar_value

__all__ = ["SGD", "sgd"]


def rule(xp: Any, param: Any, grad: Any, buffer: Any, lr: float, momentum: float, dampening: float, weight_decay: float,
         nesterov: bool, maximize: bool, first: bool) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    if weight_decay != 0:
        grad = xp.add(grad, param, alpha=weight_decay)
    if momentum != 0:
        if first:
            xp.copy_(buffer, grad)
        else:
            xp.add_(xp.mul_(buffer, momentum), grad, alpha=1 - dampening)
        grad = xp.add(grad, buffer, alpha=momentum) if nesterov else buffer
    xp.add_(param, grad, alpha=-lr)


def update_by_sparse(param: Tensor, grad: Tensor, buffer: Any, lr: Any, momentum: float, dampening: float,
                     weight_decay: float, nesterov: bool, maximize: bool) -> Any:
    """Update a parameter in place by a sparse gradient; the momentum buffer, which is sparse, too.

    Raises:
        RuntimeError: with weight decay, which is dense (PyTorch's text).
    """
    with no_grad():
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = fn.add(grad, param, alpha=weight_decay)
        if momentum != 0:
            if buffer is None:
                buffer = grad.clone().detach()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = fn.add(grad, buffer, alpha=momentum) if nesterov else buffer
        param.add_(grad, alpha=-lr)
    return buffer


class SGD(FirstOrder):
    """Stochastic gradient descent: p ← p - lr · b, with the momentum buffer b ← momentum · b + (1 - dampening) · g.

    In the first step b = g. With `nesterov`: p ← p - lr · (g + momentum · b). Without momentum: p ← p - lr · g.
    Source of Nesterov momentum in this form: Sutskever et al., "On the Importance of Initialization and Momentum in
    Deep Learning" (2013).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1e-3).
        momentum: decay rate of b (default 0).
        dampening: reduces the share of g in b (default 0).
        weight_decay: λ; adds λ · p to g (default 0).
        nesterov: use Nesterov momentum.
        maximize: negate g.
        foreach, fused: accepted and stored; the update is the same.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: a hyperparameter is negative; or `nesterov` without momentum or with dampening.
        RuntimeError: `fused` together with `foreach` or `differentiable`.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.SGD([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.7000], requires_grad=True)
    """

    added_options = (*FirstOrder.added_options, ("nesterov", False), ("fused", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: Any = 0, nesterov: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None) -> None:
        check_lr(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                    "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
                    "differentiable": differentiable, "fused": fused}
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    def _update(self, group: dict[str, Any]) -> None:
        momentum = group["momentum"]
        differentiable = group["differentiable"]
        lr = group["lr"] if differentiable else scalar_value(group["lr"])
        weight_decay = group["weight_decay"] if differentiable else scalar_value(group["weight_decay"])
        updates: dict[bool, list[tuple]] = {}  # by whether the buffer is new
        new: set[int] = set()  # parameters whose buffers are: one that comes twice gets two, the last of which stays
        for param in group["params"]:
            grad = param._grad
            if grad is None:
                continue
            buffer, first = None, False
            if grad.is_sparse:
                state = self.state[param] if momentum != 0 else {}
                buffer = update_by_sparse(param, grad, state.get("momentum_buffer"), lr, momentum, group["dampening"],
                                          weight_decay, group["nesterov"], group["maximize"])
                if momentum != 0:
                    state["momentum_buffer"] = buffer
                continue
            if momentum != 0:
                state = self.state[param]
                buffer = state.get("momentum_buffer")
                if buffer is None or (new and id(param) in new):
                    buffer, first = fn.empty_like(grad), True
                    state["momentum_buffer"] = buffer
                    new.add(id(param))
            updates.setdefault(first, []).append((param, grad, buffer))
        for first, operands in updates.items():
            apply_updates(rule, operands, (lr, momentum, group["dampening"], weight_decay, group["nesterov"],
                                           group["maximize"], first), differentiable)


def sgd(params: list[Tensor], d_p_list: list[Tensor], momentum_buffer_list: list[Any], has_sparse_grad: bool = False,
        foreach: bool | None = None, fused: bool | None = None, grad_scale: Tensor | None = None,
        found_inf: Tensor | None = None, *, weight_decay: float, momentum: float, lr: Any, dampening: float,
        nesterov: bool, maximize: bool) -> None:
    """Update lists of parameters and momentum buffers in place; absent buffers are made. See `SGD`."""
    lr = scalar_value(lr)
    for i, (param, grad) in enumerate(zip(params, d_p_list, strict=True)):
        if grad.is_sparse:
            momentum_buffer_list[i] = update_by_sparse(param, grad, momentum_buffer_list[i], lr, momentum, dampening,
                                                       weight_decay, nesterov, maximize)
            continue
        buffer, first = momentum_buffer_list[i] if momentum != 0 else None, False
        if momentum != 0 and buffer is None:
            buffer, first = fn.empty_like(grad), True
            momentum_buffer_list[i] = buffer
        apply_update(rule, param, grad, (buffer,), lr, momentum, dampening, weight_decay, nesterov, maximize, first)
