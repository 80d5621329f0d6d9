"""`torch.classes`: the classes that C++ extensions register. There are no such extensions, and so no classes."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

loaded_libraries: set[str] = set()  #: paths of the libraries that were loaded: none


class _Namespace(ModuleType):
    """The classes of a namespace: none."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(f"Tried to instantiate class '{self.__name__.rpartition('.')[2]}.{name}', but it does not "
                           "exist! Ensure that it is registered via torch::class_")


def load_library(path: str) -> NoReturn:
    """Load a library of classes, which is refused.

    Raises:
        OSError: always: extensions of C++ need PyTorch's own library.
    """
    import os

    raise OSError(f"Could not load this library: {os.path.realpath(path)}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Namespace(f"torch.classes.{name}")
