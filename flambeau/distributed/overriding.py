"""`__torch_function__` in collectives: `overrides`, which watches all functions, is imported when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor.overriding import protocol


def has_torch_function(relevant: tuple[Any, ...]) -> bool:
    """`torch.overrides.has_torch_function`, for a process that has no handlers without that module.

    Args:
        relevant: the tensors that may have handlers.
    """
    if all(type(x) is Tensor for x in relevant) and not protocol.function_modes.get() and (
            not protocol.skips_next.get()):
        return False
    from ..overrides import has_torch_function as has

    return has(relevant)


def handle_torch_function(public_api: Callable[..., Any], relevant: tuple[Any, ...], *args: Any) -> Any:
    """`torch.overrides.handle_torch_function`.

    Args:
        public_api: the function that is overridden.
        relevant: the tensors that may have handlers.
        args: its arguments.
    """
    from ..overrides import handle_torch_function as handle

    return handle(public_api, relevant, *args)


__all__ = ["handle_torch_function", "has_torch_function"]
