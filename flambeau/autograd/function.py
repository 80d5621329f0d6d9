"""`torch.autograd.function`: the classes of custom autograd Functions."""

from __future__ import annotations

from .._tensor.dispatch.custom_function import Function, FunctionCtx, FunctionMeta, FunctionNode, once_differentiable


class InplaceFunction(Function):
    """Deprecated base class; a `Function` may write to its inputs itself (`ctx.mark_dirty`)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


for _class in (Function, FunctionCtx, FunctionMeta):
    _class.__module__ = __name__

BackwardCFunction = FunctionNode

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]
