"""`torch.autograd.function`: the classes of custom autograd Functions."""

from __future__ import annotations

from typing import Any

from .._tensor.custom_functions.function import Function, FunctionCtx, FunctionMeta, FunctionNode, once_differentiable


class InplaceFunction(Function):
    """Deprecated base class; a `Function` may write to its inputs itself (`ctx.mark_dirty`)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Deprecated base class of functions with `forward_extended` and `backward_extended`; use `Function`."""

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that were saved: none, an instance cannot be called."""
        return ()

    def forward_extended(self, *input: Any) -> None:
        """The operator."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """The gradients of the inputs."""
        raise NotImplementedError


for _class in (Function, FunctionCtx, FunctionMeta):
    _class.__module__ = __name__

BackwardCFunction = FunctionNode

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "NestedIOFunction",
           "once_differentiable"]
