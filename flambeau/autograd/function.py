"""`torch.autograd.function`: what a user's own operator is made of."""

from __future__ import annotations

from .._tensor.dispatch.custom_function import Function, FunctionCtx, FunctionMeta, FunctionNode, once_differentiable


class InplaceFunction(Function):
    """A Function of old; Functions that write to their inputs need no class of their own."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


for _class in (Function, FunctionCtx, FunctionMeta):
    _class.__module__ = __name__

BackwardCFunction = FunctionNode

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]
