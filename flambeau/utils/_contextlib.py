"""`torch.utils._contextlib`: context managers that also decorate functions and generators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..engine.grad_mode import _Mode


class _DecoratorContextManager(_Mode):
    """A base class of context managers that decorate functions."""

    def clone(self) -> Any:
        """A new context manager like this one, for one call of a decorated function."""
        return self.__class__()

    def _fresh(self) -> Any:
        return self.clone()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A base class of context managers without arguments, which decorate functions without parentheses too."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs under a context manager, or under a new one of a factory for each call."""
    def factory() -> Any:
        return ctx() if callable(ctx) and not hasattr(ctx, "__enter__") else ctx

    if inspect.isclass(func):
        raise RuntimeError(f"Cannot decorate classes; it is ambiguous whether or not only the constructor or all "
                           f"methods should have the context manager applied: {func}")

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with factory():
            return func(*args, **kwargs)

    return decorated
