"""Methods by class: modules that share `__init__` or `forward` have them under their own names, where PyTorch's do."""

from __future__ import annotations

from types import FunctionType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_METHODS = ("__init__", "forward")


class OwnMethods:
    """A base of modules whose subclasses have shared methods of their own, which Python's errors name.

    Args:
        shares: the methods among `__init__` and `forward`, defined in the class, that each public subclass of this
            package has under its own name.
        own: those that the class itself has under its own name, though it inherits them.

    >>> import flambeau as torch
    >>> torch.nn.MaxPool2d.forward.__qualname__, torch.nn.MaxPool1d.forward.__qualname__
    ('MaxPool2d.forward', 'MaxPool1d.forward')
    """

    _shares: tuple[str, ...]

    def __init_subclass__(cls, shares: tuple[str, ...] = (), own: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._shares = shares
        public = not cls.__name__.startswith("_") and cls.__module__.partition(".")[0] == _PACKAGE
        for name in _METHODS:
            definer = next((base for base in cls.__mro__ if name in vars(base)), object)
            method = vars(definer).get(name)
            if definer is not cls and isinstance(method, FunctionType) and (
                    name in own or (public and name in vars(definer).get("_shares", ()))):
                setattr(cls, name, _under_the_name_of(cls, method))


def _under_the_name_of(cls: type, method: FunctionType) -> FunctionType:
    own = FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__)
    own.__kwdefaults__, own.__annotations__ = method.__kwdefaults__, method.__annotations__
    own.__doc__, own.__module__ = method.__doc__, cls.__module__
    own.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    return own


__all__ = ["OwnMethods"]
