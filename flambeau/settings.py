"""Settings modules like `torch._dynamo.config`: attributes that programs read, write and patch."""

from __future__ import annotations

import copy
import functools
import hashlib
import pickle
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


class Settings(ModuleType):
    """A module whose attributes are settings.

    Args:
        name: the module's name in errors.
        values: all settings with their defaults; None: any name may be written.
        on_write: called with the name and the new value after each write.

    Raises:
        AttributeError: an unknown setting is read or written.

    >>> config = Settings("torch.compiler.config", {"verbose": False})
    >>> with config.patch(verbose=True):
    ...     config.verbose
    True
    >>> config.verbose
    False
    """

    def __init__(self, name: str, values: Mapping[str, Any] | None = None,
                 on_write: Callable[[str, Any], None] | None = None) -> None:
        super().__init__(name)
        own = self.__dict__
        own["_values"], own["_open"], own["_on_write"] = dict(values or {}), values is None, on_write
        own["_defaults"] = copy.deepcopy({name: value for name, value in own["_values"].items()
                                          if not isinstance(value, Settings)})
        own["_known"] = frozenset(values or ())  # a deleted setting can be written again, as `mock.patch` does

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"{self.__name__}.{name} does not exist") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # written by the import system
            super().__setattr__(name, value)
            return
        if not self._open and name not in self._values and name not in self._known:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        before = self._values.get(name, value)
        self._values[name] = value
        if self._on_write is not None:
            try:
                self._on_write(name, value)
            except BaseException:
                self._values[name] = before
                raise

    def __delattr__(self, name: str) -> None:
        if name not in self._values:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        del self._values[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values})

    def patch(self, arg1: str | Mapping[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Patch:
        """Change settings in a `with` block or a decorated function: `patch("a", 1)`, `patch({"a": 1})`, `patch(a=1)`.

        A dotted name is a setting of a group: `patch("triton.cudagraphs", True)`.
        """
        changes = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs}
        return Patch(self, changes)

    def to_dict(self) -> dict[str, Any]:
        """All settings, those of groups by dotted names."""
        flat: dict[str, Any] = {}
        for name, value in self._values.items():
            if isinstance(value, Settings):
                flat.update({f"{name}.{inner}": each for inner, each in value.to_dict().items()})
            else:
                flat[name] = copy.deepcopy(value)
        return flat

    get_config_copy = shallow_copy_dict = to_dict

    def save_config(self) -> bytes:
        """All settings, pickled; names with an underscore, and those that are lists of other settings, are left out."""
        return pickle.dumps({name: value for name, value in self.to_dict().items() if name[:1] != "_"}, protocol=2)

    def load_config(self, config: Mapping[str, Any] | bytes) -> None:
        """Write the settings of a dictionary as returned by `to_dict`, or of the bytes that `save_config` returned."""
        values: Mapping[str, Any] = pickle.loads(config) if isinstance(config, bytes) else config
        for name, value in values.items():
            _write(self, name, value)

    def is_default(self, name: str) -> bool:
        """Whether a setting has its default."""
        group, last = _group(self, name)
        return bool(group._values[last] == group._defaults[last])

    def codegen_config(self) -> str:
        """Statements that set what differs from the defaults."""
        return "\n".join([f"{self.__name__}.{name} = {value!r}" for name, value in self.to_dict().items()
                          if not self.is_default(name)])

    def get_hash(self) -> bytes:
        """A hash of all settings."""
        return hashlib.md5(self.save_config(), usedforsecurity=False).digest()


class Patch:
    """A context manager and decorator that changes settings and restores them."""

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
        """`function`, with the settings changed while it runs; of a `unittest.TestCase`, while its tests run.

        Raises:
            AssertionError: a class that is no test case.
        """
        if isinstance(function, type):
            return self._patched_tests(function)

        @functools.wraps(function)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return patched

    def _patched_tests(self, case: type) -> type:
        """A test case with the tests of `case`, before the first of which the settings change."""
        import unittest  # rarely imported

        if not issubclass(case, unittest.TestCase):
            raise AssertionError(f"settings can be patched for functions and test cases, but got {case}")
        patch = self

        class _Patched(case):  # type: ignore[misc]
            @classmethod
            def setUpClass(cls) -> None:
                patch.__enter__()
                try:
                    super().setUpClass()
                except BaseException:
                    patch.__exit__()
                    raise

            @classmethod
            def tearDownClass(cls) -> None:
                try:
                    super().tearDownClass()
                finally:
                    patch.__exit__()

        for name in ("__name__", "__qualname__", "__module__"):
            setattr(_Patched, name, getattr(case, name))
        return _Patched


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
