"""Muon: momentum whose update is orthogonalized by Newton-Schulz iterations, for matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .optimizer import FirstOrder
from .update_rules import scalar_value

__all__ = ["Muon"]

EPS = 1e-7
DEFAULT_A = 3.4445
DEFAULT_B = -4.7750
DEFAULT_C = 2.0315
DEFAULT_NS_STEPS = 5


def _zeropower_via_newtonschulz(grad: Tensor, ns_coefficients: tuple[float, float, float], ns_steps: int,
                                eps: float) -> Tensor:
    """An approximation of UVᵀ, where USVᵀ is the singular value decomposition of the gradient, in bfloat16."""
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(grad.shape) != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    x = grad.bfloat16()
    tall = grad.size(0) > grad.size(1)
    if tall:
        x = x.T
    x.div_(x.norm().clamp(min=eps))
    for _ in range(ns_steps):
        gram = x @ x.T
        x = fn.addmm(x, fn.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr: float, adjust_lr_fn: str | None, param_shape: Any) -> float:
    rows, columns = param_shape[:2]
    if adjust_lr_fn is None or adjust_lr_fn == "original":
        return lr * math.sqrt(max(1, rows / columns))
    return lr * (0.2 * math.sqrt(max(rows, columns)) if adjust_lr_fn == "match_rms_adamw" else 1.0)


class Muon(FirstOrder):
    """Muon: p ← (1 - lr · λ) p - lr' · orthogonalized(b), with the momentum b ← μ b + (1 - μ) g.

    The update is orthogonalized by Newton-Schulz iterations; lr' is lr adjusted to the shape. For matrices only; other
    parameters need another optimizer.
    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024).

    Args:
        params: parameters of 2 dimensions, (name, parameter) pairs, or dicts that are parameter groups.
        lr: learning rate (default 1e-3).
        weight_decay: λ (default 0.1).
        momentum: μ (default 0.95).
        nesterov: use Nesterov momentum.
        ns_coefficients: the coefficients of the iteration's polynomial.
        eps: added to the norm of the update.
        ns_steps: number of iterations.
        adjust_lr_fn: "original" (default), lr · √max(1, rows / columns), or "match_rms_adamw",
            0.2 lr · √max(rows, columns).

    Raises:
        ValueError: a hyperparameter is out of range, or a parameter is no matrix.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.eye(2))
    >>> optimizer = torch.optim.Muon([p], lr=0.1)
    >>> (p * 3).sum().backward()
    >>> optimizer.step()
    >>> p.shape
    flambeau.Size([2, 2])
    """

    added_options = ()

    def __init__(self, params: Iterable[Any], lr: Any = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (DEFAULT_A, DEFAULT_B, DEFAULT_C), eps: float = EPS,
                 ns_steps: int = DEFAULT_NS_STEPS, adjust_lr_fn: str | None = None) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                    "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn}
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError("Muon only supports 2D parameters whereas we found a parameter with size: "
                                     f"{param.size()}")

    has_update_rule = False

    def _update(self, group: dict[str, Any]) -> None:
        params, grads, buffers = [], [], []
        for param in group["params"]:
            grad = param._grad
            if grad is None:
                continue
            if param.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            if grad.is_sparse:
                raise RuntimeError("Muon does not support sparse gradients")
            state = self.state[param]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = fn.zeros_like(grad)
            params.append(param)
            grads.append(grad)
            buffers.append(state["momentum_buffer"])
        options = ("lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn")
        muon(params, grads, buffers, **{name: group[name] for name in options}, has_complex=False)


def muon(params: list[Tensor], grads: list[Tensor], muon_momentum_bufs: list[Tensor], *, foreach: bool | None = None,
         lr: Any, weight_decay: float, momentum: float, nesterov: bool, ns_coefficients: tuple[float, float, float],
         ns_steps: int, eps: float, adjust_lr_fn: str | None, has_complex: bool) -> None:
    """Update matrices and their momentum in place; see `Muon`."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    lr = scalar_value(lr)
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    for param, grad, buffer in zip(params, grads, muon_momentum_bufs, strict=True):
        if grad.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if nesterov else buffer
        update = _zeropower_via_newtonschulz(update, ns_coefficients, ns_steps, eps)
        param.mul_(1 - lr * weight_decay)
        param.add_(update, alpha=-_adjust_lr(lr, adjust_lr_fn, param.shape))
