"""Modules of PyTorch that are left out: their names exist, so that programs that import them run until they use one.

A class of such a module has no instances, but may be a base class or an argument of `isinstance`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def refusing_function(name: str, reason: str) -> Callable[..., Any]:
    """A function that raises NotImplementedError."""
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}: {reason}")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__module__ = name.rpartition(".")[0]
    refuse.__doc__ = f"Left out: {reason}."
    return refuse


def refusing_class(name: str, reason: str, bases: tuple[type, ...] = ()) -> type:
    """A class whose instances, and those of its subclasses, cannot be made."""
    module, _, short = name.rpartition(".")

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{name}: {reason}")

    return type(short, bases, {"__init__": refuse, "__module__": module, "__doc__": f"Left out: {reason}."})


class LeftOut(ModuleType):
    """A module that is left out.

    Args:
        name: its name, `torch.onnx`.
        reason: the end of the sentence that its functions and classes raise.
        classes, functions: names in it, separated by spaces.
        enums: name of an enumeration -> its members, separated by spaces.
        values: other names.
    """

    def __init__(self, name: str, reason: str, *, classes: str = "", functions: str = "",
                 enums: Mapping[str, str] | None = None, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, f"`{name}`, which is left out: {reason}.")
        self.__path__: list[str] = []
        own = vars(self)
        own.update({each: refusing_class(f"{name}.{each}", reason) for each in classes.split()})
        own.update({each: refusing_function(f"{name}.{each}", reason) for each in functions.split()})
        own.update({each: enum.Enum(each, members, module=name) for each, members in (enums or {}).items()})
        own.update(values or {})


def tree(modules: Mapping[str, LeftOut]) -> None:
    """Make each module an attribute of its parent: `a.b` of `a`.

    Args:
        modules: dotted name -> module; a parent that is missing is left as it is.
    """
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent in modules:
            setattr(modules[parent], child, module)


__all__ = ["LeftOut", "refusing_class", "refusing_function", "tree"]
