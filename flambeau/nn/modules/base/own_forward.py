"""`forward` by class: modules that share one have it under their own names, as in PyTorch, where each defines it."""

from __future__ import annotations

from types import FunctionType
from typing import Any

_PACKAGE = __name__.partition(".")[0]


class OwnForward:
    """A direct base of modules whose public subclasses here have a `forward` of their own, which Python's errors name.

    Args:
        own_forward: whether a subclass has one, where it is private or its base is no such module.

    >>> import flambeau as torch
    >>> torch.nn.MaxPool2d.forward.__qualname__, torch.nn.MaxPool1d.forward.__qualname__
    ('MaxPool2d.forward', 'MaxPool1d.forward')
    """

    def __init_subclass__(cls, own_forward: bool | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shared = next(base for base in cls.__mro__ if "forward" in vars(base) or base is object)
        inherited = vars(shared).get("forward")
        if own_forward is None:
            own_forward = OwnForward in shared.__bases__ and not cls.__name__.startswith("_") and (
                cls.__module__.partition(".")[0] == _PACKAGE)
        if own_forward and shared is not cls and isinstance(inherited, FunctionType):
            own = FunctionType(inherited.__code__, inherited.__globals__, "forward", inherited.__defaults__,
                               inherited.__closure__)
            own.__kwdefaults__, own.__annotations__ = inherited.__kwdefaults__, inherited.__annotations__
            own.__doc__, own.__module__ = inherited.__doc__, cls.__module__
            own.__qualname__ = f"{cls.__qualname__}.forward"
            cls.forward = own  # type: ignore[attr-defined]


__all__ = ["OwnForward"]
