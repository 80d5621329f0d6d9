"""Placeholders for names that flambeau lacks: usable while a file loads; later use skips or fails the test."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

loading = [False]  # while a file loads, uses of placeholders in decorators and constants must not raise


class Internal(unittest.SkipTest):
    """A test used something that only PyTorch's own implementation has."""


class Missing(AttributeError):
    """A test used something public that flambeau does not have."""


class Placeholder:
    """A placeholder for a missing name; `internal`: PyTorch's implementation detail, whose use skips the test."""

    def __init__(self, path: str, internal: bool) -> None:
        self.__dict__.update(_path=path, _internal=internal, __name__=path.rpartition(".")[2], __doc__=None)

    def _used(self) -> NoReturn:
        raise (Internal if self._internal else Missing)(f"{self._path} is not there")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Placeholder(f"{self._path}.{name}", self._internal)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not loading[0]:
            self._used()
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], Placeholder):
            return self._in_place_of(args[0])
        return Placeholder(f"{self._path}()", self._internal)

    def _in_place_of(self, decorated: Callable[..., Any]) -> Callable[..., Any]:
        def unusable(*args: Any, **kwargs: Any) -> NoReturn:
            self._used()

        unusable.__name__ = getattr(decorated, "__name__", "unusable")
        return unusable

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        if not loading[0]:
            self._used()
        def begin(made: Any, *args: Any, **kwargs: Any) -> None:
            if not loading[0]:
                self._used()

        return (type(self.__name__, (), {"__init__": begin, "__getattr__": lambda made, name: getattr(self, name)}),)

    def __contains__(self, item: Any) -> bool:
        return bool(self)

    def __bool__(self) -> bool:
        return False if loading[0] else self._used()

    def _any_use(self, *args: Any) -> Any:
        self._used()

    def __instancecheck__(self, instance: Any) -> bool:
        return False if self._internal else self._used()  # flambeau makes no instances of PyTorch's internal classes

    __subclasscheck__ = __instancecheck__
    __enter__ = __exit__ = __iter__ = __len__ = __getitem__ = __setattr__ = _any_use
    __add__ = __sub__ = __mul__ = __lt__ = __gt__ = __le__ = __ge__ = __or__ = __and__ = _any_use


class PlaceholderModule(ModuleType):
    """A placeholder for a missing module: any name can be imported from it."""

    def __init__(self, name: str, internal: bool) -> None:
        super().__init__(name, "not there")
        self.__dict__.update(_placeholder=Placeholder(name, internal), __path__=[])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_placeholder"], name)
