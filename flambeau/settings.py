"""Modules of settings, as PyTorch has them: programs read and write them as attributes."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


class Settings(ModuleType):
    """Settings by name, kept as they are written.

    Args:
        name: as errors call it.
        values: all settings there are; None: any name may be written.
        told: called with the name and the new value whenever one is written.

    Raises:
        AttributeError: a setting that there is not is read or written.

    >>> config = Settings("torch.compiler.config", {"verbose": False})
    >>> with config.patch(verbose=True):
    ...     config.verbose
    True
    >>> config.verbose
    False
    """

    def __init__(self, name: str, values: Mapping[str, Any] | None = None,
                 told: Callable[[str, Any], None] | None = None) -> None:
        super().__init__(name)
        own = self.__dict__
        own["_values"], own["_open"], own["_told"] = dict(values or {}), values is None, told

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"{self.__name__}.{name} does not exist") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # what importing a module writes
            super().__setattr__(name, value)
            return
        if not self._open and name not in self._values:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        self._values[name] = value
        if self._told is not None:
            self._told(name, value)

    def __delattr__(self, name: str) -> None:
        if name not in self._values:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        del self._values[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values})

    def patch(self, arg1: str | Mapping[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Patch:
        """Other values in a block or while a function runs: `patch("a", 1)`, `patch({"a": 1})` or `patch(a=1)`.

        A name with dots is one of a group: `patch("triton.cudagraphs", True)`.
        """
        changes = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs}
        return Patch(self, changes)

    def to_dict(self) -> dict[str, Any]:
        """All settings, those of groups by names with dots."""
        found: dict[str, Any] = {}
        for name, value in self._values.items():
            if isinstance(value, Settings):
                found.update({f"{name}.{inner}": each for inner, each in value.to_dict().items()})
            else:
                found[name] = copy.deepcopy(value)
        return found

    get_config_copy = shallow_copy_dict = to_dict

    def load_config(self, config: Mapping[str, Any]) -> None:
        """Write many settings, as `to_dict` gives them."""
        for name, value in config.items():
            _write(self, name, value)


class Patch:
    """Settings that have other values in a block, or while a function runs."""

    def __init__(self, settings: Settings, changes: Mapping[str, Any]) -> None:
        self.settings, self.changes = settings, dict(changes)
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        before = {name: _read(self.settings, name) for name in self.changes}
        self._before.append(before)
        for name, value in self.changes.items():
            _write(self.settings, name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.pop().items():
            if value is _MISSING:
                _remove(self.settings, name)
            else:
                _write(self.settings, name, value)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which has these settings whenever it runs."""

        @functools.wraps(function)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return patched


_MISSING = object()


def _group(settings: Settings, name: str) -> tuple[Settings, str]:
    *groups, last = name.split(".")
    for each in groups:
        settings = getattr(settings, each)
    return settings, last


def _read(settings: Settings, name: str) -> Any:
    group, last = _group(settings, name)
    return getattr(group, last, _MISSING) if group._open else getattr(group, last)


def _write(settings: Settings, name: str, value: Any) -> None:
    group, last = _group(settings, name)
    setattr(group, last, value)


def _remove(settings: Settings, name: str) -> None:
    group, last = _group(settings, name)
    delattr(group, last)


__all__ = ["Patch", "Settings"]
