"""Adam: steps scaled by the running averages of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .arithmetic import advance, number, run
from .optimizer import FirstOrder, check_betas, check_fused, check_lr, new_step, signed, zeros_like

__all__ = ["Adam"]


def rule(xp: Any, param: Any, grad: Any, average: Any, square: Any, largest: Any, lr: float, beta1: float,
         beta2: float, eps: float, weight_decay: float, decoupled: bool, maximize: bool, step: float) -> None:
    """One step of one parameter."""
    grad = signed(xp, grad, maximize)
    if weight_decay != 0:
        if decoupled:
            xp.mul_(param, 1 - lr * weight_decay)
        else:
            grad = xp.add(grad, param, alpha=weight_decay)
    xp.lerp_(average, grad, 1 - beta1)
    xp.addcmul_(xp.mul_(square, beta2), grad, grad, value=1 - beta2)
    # both averages start at zero: undo their pull
    step_size = lr / (1 - beta1**step)
    correction = (1 - beta2**step) ** 0.5
    if largest is not None:
        xp.maximum_(largest, square)
        square = largest
    scale = xp.add_(xp.div_(xp.sqrt(square), correction), eps)
    xp.addcdiv_(param, average, scale, value=-step_size)


class Adam(FirstOrder):
    """p ← p - lr · m̂ / (√v̂ + eps), with m and v the running averages of g and g², freed from their start at 0.

    Args:
        lr: the step's length.
        betas: how much of m and of v stays.
        eps: keeps the quotient finite.
        weight_decay: λ, which adds λ · p to g or, if `decoupled_weight_decay`, shrinks p itself.
        amsgrad: divide by the largest v so far.
        maximize: ascend instead.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adam([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.9000], requires_grad=True)
    """

    later_options = (*FirstOrder.later_options, ("amsgrad", False), ("capturable", False), ("fused", None),
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
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
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

    def _update(self, group: dict[str, Any]) -> None:
        differentiable = group["differentiable"]
        lr = group["lr"] if differentiable else number(group["lr"])
        beta1, beta2 = group["betas"] if differentiable else map(number, group["betas"])
        for param, grad, state in self._with_grad(group):
            if not state:
                state["step"] = new_step()
                state["exp_avg"] = zeros_like(param)
                state["exp_avg_sq"] = zeros_like(param)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = zeros_like(param)
            largest = state["max_exp_avg_sq"] if group["amsgrad"] else None
            step = advance(state["step"])
            run(rule, param, grad, (state["exp_avg"], state["exp_avg_sq"], largest), lr, beta1, beta2,
                group["eps"], group["weight_decay"], group["decoupled_weight_decay"], group["maximize"],
                step, differentiable=differentiable)
