"""`torch.overrides`: functions that ask handlers of `__torch_function__`, for functions of one's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ..tensor import Tensor
from . import entry_points, protocol
from .function_modes import _get_current_function_mode, _is_torch_function_mode_enabled


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is active or one of the values has a `__torch_function__` that is enabled.

    >>> import flambeau as torch
    >>> torch.overrides.has_torch_function((torch.ones(1), 2))
    False
    """
    if protocol.disabled.get() == protocol.ALL_DISABLED:
        return False
    if protocol.skips_next.get():
        protocol.skips_next.set(False)
        return False
    relevant = tuple(relevant_args)
    if relevant and protocol.function_modes.get():
        return True
    if protocol.disabled.get() != protocol.ENABLED:
        return False
    found = False
    for x in relevant:
        if protocol.kind_of(type(x)) == protocol.OVERRIDES:
            found = True
            if not isinstance(x, Tensor):
                entry_points.note_foreign(type(x))
    return found


def has_torch_function_unary(x: Any) -> bool:
    """`has_torch_function` of one value.

    >>> import flambeau as torch
    >>> torch.overrides.has_torch_function_unary(torch.ones(2))
    False
    """
    return has_torch_function((x,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several values.

    >>> import flambeau as torch
    >>> torch.overrides.has_torch_function_variadic(torch.ones(2), torch.ones(2))
    False
    """
    return has_torch_function(args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any,
                          **kwargs: Any) -> Any:
    """The result of the first handler that does not return NotImplemented.

    Args:
        public_api: the function that was called.
        relevant_args: the values among its arguments that may have handlers.
        args: its arguments, passed to the handlers.
        kwargs: its keyword arguments.

    Raises:
        TypeError: all handlers return NotImplemented.

    >>> import flambeau as torch
    >>> def double(x):
    ...     if torch.overrides.has_torch_function_unary(x):
    ...         return torch.overrides.handle_torch_function(double, (x,), x)
    ...     return x * 2
    >>> double(torch.ones(1))
    tensor([2.])
    """
    overloaded = _get_overloaded_args(relevant_args)
    try:
        return protocol.ask_handlers(public_api, "", overloaded, args, kwargs)
    except protocol.NoImplementation:
        message = (f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types that "
                   f"implement __torch_function__: {[type(x) for x in overloaded]}")
        if _is_torch_function_mode_enabled():
            message += f" nor in mode {_get_current_function_mode()}"
        raise TypeError(message) from None


def _get_overloaded_args(relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None) -> list[Any]:
    """The first value of each overriding class, subclasses before their superclasses."""
    if protocol.disabled.get() != protocol.ENABLED:
        return []
    return protocol.overloaded_arguments(relevant_args, get_type_fn or type)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that makes a function ask for overrides.

    Args:
        dispatcher: returns the relevant arguments; it has the function's signature.

    >>> import flambeau as torch
    >>> @torch.overrides.wrap_torch_function(lambda a: (a,))
    ... def increment(a):
    ...     return a + 1
    >>> increment(torch.ones(1))
    tensor([2.])
    """
    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorator


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor, or its class has a `__torch_function__`.

    >>> import flambeau as torch
    >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


for _function in (has_torch_function, has_torch_function_unary, has_torch_function_variadic, handle_torch_function,
                  wrap_torch_function, is_tensor_like):
    _function.__module__ = __name__.partition(".")[0] + ".overrides"

__all__ = ["handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
           "is_tensor_like", "wrap_torch_function"]
