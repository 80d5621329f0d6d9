"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """AdamW: `Adam` with decoupled weight decay, p ← (1 - lr · λ) · p before the update of Adam.

    The averages m and v do not include the decay.
    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019).

    Args:
        weight_decay: λ (default 1e-2). The other parameters are those of `Adam`.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.AdamW([p], lr=0.1)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.8990], requires_grad=True)
    """

    added_options = (*Adam.added_options, ("decoupled_weight_decay", True))

    def __init__(self, params: Iterable[Any], lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)
