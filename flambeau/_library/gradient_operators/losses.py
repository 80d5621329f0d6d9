"""Gradients of losses as operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ...nn import functional as F
from .vector_jacobian import gradient_of, vector_jacobian

_MEAN = 1
_REDUCTIONS = ("none", "mean", "sum")


def _nll_loss(grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int,
              ignore_index: int, total_weight: Tensor) -> Tensor:
    """The gradient of a mean is that of the sum, divided by the total weight that the loss returned."""
    by = "sum" if reduction == _MEAN else _REDUCTIONS[reduction]
    given = grad_output / total_weight if reduction == _MEAN else grad_output
    return vector_jacobian(lambda x: F.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=by), [self],
                           (given,))[0]


#: "aten.name.overload" -> kernel
KERNELS: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}_backward.default": gradient_of(f"{name}_backward", name) for name in (
        "binary_cross_entropy", "huber_loss", "smooth_l1_loss", "soft_margin_loss", "multi_margin_loss",
        "multilabel_margin_loss", "mse_loss")},
    **dict.fromkeys(("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default"), _nll_loss),
}

__all__ = ["KERNELS"]
