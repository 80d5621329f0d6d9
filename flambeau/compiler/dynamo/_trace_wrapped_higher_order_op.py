"""`torch._dynamo._trace_wrapped_higher_order_op`: the mode that packages enter to index by batched integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor.overriding.function_modes import TorchFunctionMode

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """Under `vmap`, let `x[i]` with a batched 0-d tensor of integers be an operator instead of a read of the integer.

    Indexing here never reads such an integer, so entering the mode changes nothing.

    >>> import flambeau as torch
    >>> from flambeau.compiler.dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    >>> with TransformGetItemToIndex():
    ...     torch.vmap(lambda i: torch.tensor([1., 2., 3.])[i])(torch.tensor([2, 0]))
    tensor([3., 1.])
    """

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))
