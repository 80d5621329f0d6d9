"""Adafactor: Adam with a second moment that is stored as row and column averages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import dtypes
from .._tensor import Tensor
from .._tensor import functions as fn
from .optimizer import FirstOrder, new_step, zeros_like
from .update_rules import advance_step, scalar_operand, scalar_value

__all__ = ["Adafactor"]


def _second_moment(grad: Any, state: dict[str, Any], one_minus_beta2: Any, eps1: float) -> Any:
    """Update the averages of squared gradients, and return the second moment of each element."""
    if grad.dim() <= 1:
        return state["variance"].lerp_(grad * grad, one_minus_beta2)
    for dim, name in ((-1, "row_var"), (-2, "col_var")):
        mean = fn.norm(grad, dim=dim, keepdim=True).square() / grad.size(dim)
        state[name].lerp_(mean, one_minus_beta2)
    rows = state["row_var"]
    return (rows @ state["col_var"]) / rows.mean(dim=-2, keepdim=True).clamp(min=eps1)


def _root_mean_square(x: Any) -> Any:
    """√mean(x²), in float64."""
    return x.norm(2).double() / x.numel() ** 0.5


class Adafactor(FirstOrder):
    """Adafactor: a factored second moment, and steps relative to the parameter's size.

    p ← p - ρ · max(eps₂, rms(p)) · u / max(1, rms(u) / d), with ρ = min(lr, 1/√t) at step t and u = g / √v.
    v is a running average of g² with decay rate 1 - t^beta2_decay. Of a matrix, only averages over rows and columns
    are saved; v is their outer product over the mean of the row averages.
    Source: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost" (2018).

    Args:
        params: parameters, (name, parameter) pairs, or dicts that are parameter groups.
        lr: upper bound of the relative step ρ; also scales the weight decay (default 1e-2).
        beta2_decay: exponent of the decay rate of v, at most 0 (default -0.8).
        eps: lower bounds of √v (None: the dtype's machine epsilon) and of rms(p) (default (None, 1e-3)).
        d: clipping threshold of rms(u), at least 1 (default 1).
        weight_decay: λ; multiplies p by 1 - lr · λ (default 0).
        foreach: accepted and stored; the update is the same.
        maximize: negate g.

    Raises:
        ValueError: a hyperparameter is out of range.
        RuntimeError: in `step`: a parameter is complex.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adafactor([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.9000])
    """

    added_options = (("foreach", None),)

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
                 foreach: bool | None = None, maximize: bool = False) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
                                  "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize})

    def _update(self, group: dict[str, Any]) -> None:
        lr = scalar_value(group["lr"])
        group_eps1, eps2 = group["eps"]
        for param, grad, state in self._params_with_grad(group):
            if param.is_complex():
                del self.state[param]
                raise RuntimeError("Adafactor does not support complex parameters")
            if not state:
                state["step"] = new_step()
                if grad.dim() > 1:
                    state["row_var"] = grad.new_zeros([*grad.shape[:-1], 1])
                    state["col_var"] = grad.new_zeros([*grad.shape[:-2], 1, grad.shape[-1]])
                else:
                    state["variance"] = zeros_like(grad)
            if group["maximize"]:
                grad = -grad
            eps1 = dtypes.finfo(param.dtype).eps if group_eps1 is None else group_eps1
            step = advance_step(state["step"])
            one_minus_beta2 = scalar_operand(step ** group["beta2_decay"], grad)
            rho = scalar_operand(min(lr, 1 / step ** 0.5))
            alpha = fn.clamp(_root_mean_square(param), min=eps2) * rho
            if group["weight_decay"] != 0:
                param.mul_(scalar_operand(1 - lr * group["weight_decay"]))
            update = _second_moment(grad, state, one_minus_beta2, eps1).clamp(min=eps1 * eps1).rsqrt() * grad
            denominator = fn.clamp(_root_mean_square(update) / scalar_operand(group["d"]), min=1.0)
            param.sub_(update * (alpha / denominator).to(update.dtype))
