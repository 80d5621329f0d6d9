"""Operators that call a function: recorded graphs contain them, with the function as a subgraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.grad_mode import set_grad_enabled
from ..ops.function_operators import HigherOrderOperator

__all__ = ["Wrap", "WrapWithAutocast", "WrapWithSetGradEnabled", "wrap", "wrap_with_autocast",
           "wrap_with_set_grad_enabled"]


class Wrap(HigherOrderOperator):
    """`wrap(func, *args, **kwargs)`: the result of a function.

    >>> import flambeau as torch
    >>> from flambeau._higher_order_ops.wrap import wrap
    >>> wrap(lambda x, y: x + y, torch.ones(1), torch.ones(1))
    tensor([2.])
    """

    #: the position of the function among the arguments
    body_position = 0

    def __init__(self) -> None:
        super().__init__("wrap")


class WrapWithSetGradEnabled(HigherOrderOperator):
    """`wrap_with_set_grad_enabled(enable_grad, func, *args, **kwargs)`: the result of a function in a grad mode."""

    body_position = 1

    def __init__(self) -> None:
        super().__init__("wrap_with_set_grad_enabled")


class WrapWithAutocast(HigherOrderOperator):
    """`wrap_with_autocast(device_type, dtype, enabled, cache_enabled, func, *args, **kwargs)`: under autocast."""

    body_position = 4

    def __init__(self) -> None:
        super().__init__("wrap_with_autocast")


wrap, wrap_with_set_grad_enabled = Wrap(), WrapWithSetGradEnabled()
wrap_with_autocast = WrapWithAutocast()


@wrap.py_impl("CompositeExplicitAutograd")
def _call(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return func(*args, **kwargs)


@wrap_with_set_grad_enabled.py_impl("CompositeExplicitAutograd")
def _call_in_grad_mode(enable_grad: bool, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with set_grad_enabled(enable_grad):
        return func(*args, **kwargs)


@wrap_with_autocast.py_impl("CompositeExplicitAutograd")
def _call_under_autocast(device_type: str, dtype: Any, enabled: bool, cache_enabled: bool | None,
                         func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    from ..amp import autocast

    with autocast(device_type, dtype, enabled, cache_enabled):
        return func(*args, **kwargs)
