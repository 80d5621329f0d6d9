"""Rprop: updates that depend on the signs of the gradients alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .optimizer import FirstOrder, check_lr, descent_gradient, new_step, zeros_like
from .update_rules import advance_step, apply_update, scalar_value

__all__ = ["Rprop", "rprop"]


def rule(xp: Any, param: Any, grad: Any, previous: Any, step_size: Any, eta_minus: float, eta_plus: float,
         step_size_min: float, step_size_max: float, maximize: bool) -> None:
    """Update one parameter and its state in place."""
    grad = descent_gradient(xp, grad, maximize)
    product = xp.mul(grad, previous)
    # same sign: larger step; different signs: smaller step, and skip this one (NaN stays NaN)
    factor = xp.where(product > 0, eta_plus, xp.where(product < 0, eta_minus, xp.where(product == 0, 1.0, product)))
    xp.clamp_(xp.mul_(step_size, factor), step_size_min, step_size_max)
    grad = xp.where(product < 0, 0.0, grad)
    xp.addcmul_(param, xp.sign(grad), step_size, value=-1)
    xp.copy_(previous, grad)


class Rprop(FirstOrder):
    """Resilient backpropagation: p ← p - s · sign(g), with a step size s per element.

    s grows by the factor etas[1] where g has the sign of the previous gradient, and shrinks by etas[0] where the signs
    differ. There, g counts as 0 in this step.
    Source: Riedmiller and Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The RPROP Algorithm"
    (1993).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: initial step size (default 1e-2).
        etas: factors to shrink and to grow by, in (0, 1) and above 1 (default (0.5, 1.2)).
        step_sizes: smallest and largest step size (default (1e-6, 50)).
        capturable, foreach: accepted and stored; the update is the same.
        maximize: negate g.
        differentiable: record the update in the autograd graph.

    Raises:
        ValueError: a hyperparameter is out of range.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Rprop([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.9000])
    """

    added_options = (*FirstOrder.added_options, ("capturable", False))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable,
                                  "capturable": capturable})

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr = float(scalar_value(group["lr"]))
        state.update(step=new_step(), prev=zeros_like(param),
                     step_size=fn.full_like(param._grad, complex(lr, lr) if param.is_complex() else lr))

    def _update(self, group: dict[str, Any]) -> None:
        for param, grad, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)
            advance_step(state["step"])
            apply_update(rule, param, grad, (state["prev"], state["step_size"]), *group["etas"], *group["step_sizes"],
                         group["maximize"], differentiable=group["differentiable"])


def rprop(params: list[Tensor], grads: list[Tensor], prevs: list[Tensor], step_sizes: list[Tensor],
          state_steps: list[Tensor], foreach: bool | None = None, capturable: bool = False, maximize: bool = False,
          differentiable: bool = False, has_complex: bool = False, *, step_size_min: float, step_size_max: float,
          etaminus: float, etaplus: float) -> None:
    """Update lists of parameters and their state in place; see `Rprop`."""
    for param, grad, previous, size, count in zip(params, grads, prevs, step_sizes, state_steps, strict=True):
        advance_step(count)
        apply_update(rule, param, grad, (previous, size), etaminus, etaplus, step_size_min, step_size_max, maximize,
                     differentiable=differentiable)
