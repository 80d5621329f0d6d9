"""`torch.autograd.function`: what a user's own operator is made of."""

from __future__ import annotations

from ..tensor.custom import Function, FunctionCtx, FunctionNode, once_differentiable

BackwardCFunction = FunctionNode

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "once_differentiable"]
