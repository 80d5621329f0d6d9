"""`torch._dispatch.python`: switches of the dispatcher in Python. Here all of it is: they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def enable_python_dispatcher() -> Iterator[None]:
    """A block in which operators on symbolic sizes are allowed: they always are."""
    yield


@contextmanager
def no_python_dispatcher() -> Iterator[None]:
    """A block without it."""
    yield


@contextmanager
def suspend_functionalization() -> Iterator[None]:
    """A block without functionalization, which flambeau has only in exports."""
    yield


def all_py_loaded_overloads() -> Iterator[Any]:
    """The overloads that were looked up."""
    from ..ops import aten
    from ..ops.overloads import namespaces

    for namespace in (aten, *namespaces.values()):
        for packet in list(getattr(namespace, "_packets", {}).values()):
            yield from packet._overloads.values()


__all__ = ["all_py_loaded_overloads", "enable_python_dispatcher", "no_python_dispatcher",
           "suspend_functionalization"]
