"""`CrossMapLRN2d` as an autograd function."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.custom_functions.function import Function

__all__ = ["CrossMapLRN2d"]


def _windows(channels: int, size: int, like: Tensor) -> Tensor:
    """The matrix (C, C) whose row is 1 at the channels that a channel is normalized by.

    These are the nearest ones, and the first channel, which PyTorch's running sum never drops.
    """
    reach = int((size - 1) / 2 + 1)
    channel = fn.arange(channels, device=like.device)
    distance = channel[:, None] - channel
    return ((distance.abs() < reach) | ((channel == 0) & (distance > 0))).to(like.dtype)


class CrossMapLRN2d(Function):
    """x / (k + alpha / size · Σ x²)^beta, with the sum over nearby channels, and PyTorch's gradient."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> Tensor:
        ctx.size, ctx.alpha, ctx.beta = size, alpha, beta
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        sums = fn.einsum("cd,ndhw->nchw", _windows(input.size(1), size, input), input * input)
        ctx.scale = sums * (alpha / size) + k
        output = ctx.scale ** -beta * input
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        input, output = ctx.saved_tensors
        size, channels = ctx.size, input.size(1)
        first = int(size - (size - 1) / 2)
        padded = fn.zeros((input.size(0), channels + size - 1, *input.shape[2:]), dtype=input.dtype,
                          device=input.device)
        padded.narrow(1, first, channels).copy_(grad_output * output / ctx.scale)
        sums = padded.unfold(1, size, 1).sum(-1)
        factor = 2 * ctx.alpha * ctx.beta / size
        return ctx.scale ** -ctx.beta * grad_output - factor * input * sums, None, None, None, None
