"""SparseAdam: Adam for sparse gradients, which updates only the elements that the gradient holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .optimizer import FirstOrder
from .update_rules import scalar_value

__all__ = ["SparseAdam"]


class SparseAdam(FirstOrder):
    """`Adam` for sparse gradients: parameters and running averages change only where the gradient has elements.

    Args:
        params: dense parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1e-3).
        betas: decay rates of the averages, each in [0, 1) (default (0.9, 0.999)).
        eps: added to the denominator (default 1e-8).
        maximize: negate the gradient.

    Raises:
        ValueError: a hyperparameter is out of range, or a parameter is sparse or complex.
        RuntimeError: a gradient is dense.

    >>> import flambeau as torch
    >>> torch.optim.SparseAdam([torch.nn.Parameter(torch.zeros(2))]).defaults["lr"]
    0.001
    """

    added_options = ()

    def __init__(self, params: Iterable[Any], lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, maximize: bool = False) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i in range(2):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [([i, j], param) for i, group in enumerate(self.param_groups)
                  for j, param in enumerate(group["params"])]
        sparse = [place for place, param in places if param.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complexes = [place for place, param in places if param.is_complex()]
        if complexes:
            raise ValueError(f"Complex params at indices {complexes}: SparseAdam does not support complex parameters")

    has_update_rule = False

    def _update(self, group: dict[str, Any]) -> None:
        params, grads, averages, squares, steps = [], [], [], [], []
        for param, grad, state in self._params_with_grad(group):
            if not grad.is_sparse:
                if not state:
                    del self.state[param]
                raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
            if not state:
                state["step"] = 0
                state["exp_avg"] = fn.zeros_like(param)
                state["exp_avg_sq"] = fn.zeros_like(param)
            state["step"] += 1
            params.append(param)
            grads.append(grad)
            averages.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            steps.append(state["step"])
        beta1, beta2 = group["betas"]
        sparse_adam(params, grads, averages, squares, steps, eps=group["eps"], beta1=beta1, beta2=beta2,
                    lr=scalar_value(group["lr"]), maximize=group.get("maximize", False))


def sparse_adam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
                state_steps: list[int], *, eps: float, beta1: float, beta2: float, lr: float, maximize: bool) -> None:
    """Update dense parameters and their averages by sparse gradients in place; see `SparseAdam`."""
    for param, grad, average, square, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
        grad = (-grad if maximize else grad).coalesce()  # not linear: indices must be unique
        values = grad._values()
        if values.numel() == 0:
            continue
        where = tuple(grad._indices().unbind(0))
        old_average, old_square = average[where], square[where]
        step_average = values.sub(old_average).mul_(1 - beta1)
        step_square = values.pow(2).sub_(old_square).mul_(1 - beta2)
        average.index_put_(where, step_average, accumulate=True)
        square.index_put_(where, step_square, accumulate=True)
        numerator = step_average.add_(old_average)
        denominator = step_square.add_(old_square).sqrt_().add_(eps)
        size = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param.index_put_(where, -size * numerator.div_(denominator), accumulate=True)
