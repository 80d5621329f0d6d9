"""Adafactor: steps divided by the root of an average of squared gradients that is kept as rows and columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import dtypes
from .._tensor import functions as fn
from .arithmetic import advance, number, shown
from .optimizer import FirstOrder, check_lr, new_step, zeros_like

__all__ = ["Adafactor"]


def _averages(grad: Any, state: dict[str, Any], weight: Any, least: float) -> Any:
    """Move the averages of squared gradients, and return what they amount to for each element."""
    if grad.dim() <= 1:
        return state["variance"].lerp_(grad * grad, weight)
    for dim, name in ((-1, "row_var"), (-2, "col_var")):
        mean = fn.norm(grad, dim=dim, keepdim=True).square() / grad.size(dim)
        state[name].lerp_(mean, weight)
    rows = state["row_var"]
    return (rows @ state["col_var"]) / rows.mean(dim=-2, keepdim=True).clamp(min=least)


def _root_mean_square(x: Any) -> Any:
    """The root of the mean of squares, in float64."""
    return x.norm(2).double() / x.numel() ** 0.5


class Adafactor(FirstOrder):
    """Steps relative to the size of the parameter, along g divided by the root of an average of g².

    Of a matrix only the averages of its rows and of its columns are kept.

    Args:
        lr: the largest relative step; also scales the weight decay.
        beta2_decay: the average takes up step^beta2_decay of each new g².
        eps: the least root of an average (None: that of the dtype), and the least size of a parameter.
        d: updates are shortened to this root mean square.
        weight_decay: λ, which shrinks p by lr · λ · p.
    """

    later_options = (("foreach", None),)

    def __init__(self, params: Iterable[Any], lr: Any = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
                 foreach: bool | None = None, maximize: bool = False) -> None:
        check_lr(lr)
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
        lr = number(group["lr"])
        root, smallest = group["eps"]
        for param, grad, state in self._with_grad(group):
            if param.is_complex():
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
            least = dtypes.finfo(param.dtype).eps if root is None else root
            step = advance(state["step"])
            weight = shown(step ** group["beta2_decay"], grad)
            relative = shown(min(lr, 1 / step ** 0.5))
            length = fn.clamp(_root_mean_square(param), min=smallest) * relative
            if group["weight_decay"] != 0:
                param.mul_(shown(1 - lr * group["weight_decay"]))
            update = _averages(grad, state, weight, least).clamp(min=least * least).rsqrt() * grad
            shortened = fn.clamp(_root_mean_square(update) / shown(group["d"]), min=1.0)
            param.sub_(update * (length / shortened).to(update.dtype))
