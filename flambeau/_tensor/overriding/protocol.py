"""The protocol of `__torch_function__`: which arguments override a call, and in which order handlers are asked.

Modes are asked first, innermost first, then arguments from left to right, subclasses before their superclasses. The
first result that is not NotImplemented is the call's result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...engine.tensor_interface import layer
from ...warning_location import user_stacklevel

#: values of `disabled`
ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = 0, 1, 2
#: whether this thread ignores handlers: of arguments, or of arguments and modes
disabled: ContextVar[int] = ContextVar("torch_function_disabled", default=ENABLED)
#: the modes of this thread, outermost first
function_modes: ContextVar[tuple[Any, ...]] = ContextVar("torch_function_modes", default=())

IRRELEVANT, OVERRIDES, SEQUENCE = 0, 1, 2
_kinds: dict[type, int] = {tuple: SEQUENCE, list: SEQUENCE}

_PLAIN_METHOD = ("Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, "
                 "please define it as a classmethod.")


def disabled_torch_function(*args: Any, **kwargs: Any) -> Any:
    """The `__torch_function__` of a class that overrides nothing: `torch._C._disabled_torch_function_impl`."""
    func, args = args[0], args[2] if len(args) > 2 else kwargs.get("args", ())
    named = kwargs.get("kwargs") or {}
    token = disabled.set(max(disabled.get(), SUBCLASSES_DISABLED))
    try:
        return func(*args, **named)
    finally:
        disabled.reset(token)


def run_without_overrides(func: Callable[..., Any], *args: Any) -> Any:
    """The result of a call during which neither arguments nor modes are asked."""
    token = disabled.set(ALL_DISABLED)
    try:
        return func(*args)
    finally:
        disabled.reset(token)


layer.run_without_overrides = run_without_overrides


class _Disabled:
    """`disabled_torch_function` as a class attribute: the same object for every class and instance."""

    __name__ = "_disabled_torch_function_impl"

    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return disabled_torch_function(func, types, args, kwargs=kwargs)

    def __repr__(self) -> str:
        return "<built-in method _disabled_torch_function_impl>"


DISABLED = _Disabled()


class NoImplementation(TypeError):
    """Raised if all handlers of a call return NotImplemented."""


NoImplementation.__name__ = NoImplementation.__qualname__ = "TypeError"


def kind_of(cls: type) -> int:
    """Whether values of a class override functions (OVERRIDES) or may contain such values (SEQUENCE)."""
    kind = _kinds.get(cls)
    if kind is None:
        handler = getattr(cls, "__torch_function__", None)
        if handler is None:
            kind = SEQUENCE if issubclass(cls, (tuple, list)) else IRRELEVANT
        else:
            kind = IRRELEVANT if handler is DISABLED else OVERRIDES
        if kind != OVERRIDES and not issubclass(cls, type):  # a class of a program may be short-lived
            _kinds[cls] = kind
    return kind


def set_plain(*classes: type) -> None:
    """Declare that values of these classes override nothing, although they have a `__torch_function__`."""
    _kinds.update(dict.fromkeys(classes, IRRELEVANT))


def overrides(x: Any) -> bool:
    """Whether a value has a `__torch_function__` that is enabled."""
    return disabled.get() == ENABLED and kind_of(type(x)) == OVERRIDES


def overloaded_arguments(relevant: Iterable[Any], get_type: Callable[[Any], type] = type) -> list[Any]:
    """The first value of each overriding class, subclasses before their superclasses."""
    found: list[Any] = []
    for x in relevant:
        if kind_of(get_type(x)) == OVERRIDES:
            _insert(found, x)
    return found


def overloaded_in_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The overriding values among the arguments of a call and in its sequences."""
    found: list[Any] = []
    for x in (*args, *kwargs.values()) if kwargs else args:
        cls = type(x)
        kind = _kinds.get(cls)
        if kind is None:
            kind = kind_of(cls)
        if kind == OVERRIDES:
            _insert(found, x)
        elif kind == SEQUENCE:
            for item in x:
                if kind_of(type(item)) == OVERRIDES:
                    _insert(found, item)
    return found


def _insert(found: list[Any], x: Any) -> None:
    cls = type(x)
    for i, other in enumerate(found):
        if type(other) is cls:
            return
        if issubclass(cls, type(other)):
            if not any(type(later) is cls for later in found[i:]):
                found.insert(i, x)
            return
    found.append(x)


@contextmanager
def innermost_mode_left() -> Iterator[Any]:
    """Leave the innermost mode for the block; the mode."""
    modes = function_modes.get()
    token = function_modes.set(modes[:-1])
    try:
        yield modes[-1]
    finally:
        function_modes.reset(token)


#: the refusal of a mode whose handler does not know the mode
CLASSMETHOD = "Defining your mode's `{}` as a classmethod is not supported, please make it a plain method"


def ask_handlers(func: Callable[..., Any], name: str, overloaded: list[Any], args: tuple[Any, ...],
                 *named: Any) -> Any:
    """The result of the first handler that returns one.

    Args:
        name: the function's name, for the error; "": the function is not flambeau's.
        named: the keyword arguments, as one dictionary; nothing where the call has none.

    Raises:
        TypeError: all handlers return NotImplemented.
    """
    types = tuple(map(type, overloaded))
    mode = None
    if disabled.get() != ALL_DISABLED and function_modes.get():
        with innermost_mode_left() as mode:
            handler = mode.__torch_function__
            if getattr(handler, "__self__", None) is type(mode):
                raise RuntimeError(CLASSMETHOD.format("__torch_function__"))
            result = handler(func, types, args, *named)
        if result is not NotImplemented:
            return result
    for x in overloaded:
        handler = x.__torch_function__
        if getattr(handler, "__self__", None) is x and handler is not DISABLED:
            warnings.warn(_PLAIN_METHOD, UserWarning if name else DeprecationWarning, stacklevel=user_stacklevel())
        result = handler(func, types, args, *named)
        if result is not NotImplemented:
            return result
    lines = [] if mode is None else [f"  - mode object {mode!r}"]
    lines += [f"  - tensor subclass {cls!r}" for cls in types]
    raise NoImplementation(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned "
        "NotImplemented:\n\n" + "\n".join(lines) +
        "\n\nFor more information, try re-running with TORCH_LOGS=not_implemented")


#: whether the next check for overrides finds none
skips_next: ContextVar[bool] = ContextVar("torch_function_skips_next", default=False)


@contextmanager
def skip_once() -> Iterator[None]:
    """Make the first check for overrides in the block find none."""
    token = skips_next.set(True)
    try:
        yield
    finally:
        skips_next.reset(token)


class DisableTorchFunctionSubclass:
    """A context manager in which the `__torch_function__` of arguments is ignored."""

    level = SUBCLASSES_DISABLED

    def __enter__(self) -> None:
        self._token = disabled.set(max(disabled.get(), self.level))

    def __exit__(self, *exception: object) -> None:
        disabled.reset(self._token)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A context manager in which the `__torch_function__` of arguments and of modes is ignored."""

    level = ALL_DISABLED


class EnableTorchFunction(DisableTorchFunctionSubclass):
    """A context manager in which `__torch_function__` is enabled, inside a block that disables it.

    As in PyTorch it begins when it is made, so that it may be used without `with`: it ends with the object.
    """

    _token: Any = None

    def __init__(self) -> None:
        self._token = disabled.set(ENABLED)

    def __enter__(self) -> None:
        if self._token is None:
            self._token = disabled.set(ENABLED)

    def __exit__(self, *exception: object) -> None:
        disabled.reset(self._token)
        self._token = None

    def __del__(self) -> None:
        if self._token is not None:
            self.__exit__()


__all__ = ["ALL_DISABLED", "DISABLED", "ENABLED", "IRRELEVANT", "OVERRIDES", "SEQUENCE", "SUBCLASSES_DISABLED",
           "DisableTorchFunction", "DisableTorchFunctionSubclass", "EnableTorchFunction", "NoImplementation",
           "ask_handlers", "disabled", "function_modes", "innermost_mode_left", "kind_of", "overloaded_arguments",
           "overloaded_in_call", "overrides", "set_plain", "skip_once", "skips_next"]
