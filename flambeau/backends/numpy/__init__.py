"""NumPy primitives: the functions that operator declarations call as `xp.<name>` on arrays.

`ArrayNamespace` is `xp` for arrays. An attribute is the primitive of that name or, where there is none, the declared
operator's forward over this namespace. Parameters have PyTorch's names (`dim`, `keepdim`); a primitive named after a
declared operator takes the operator's parameters. 0-d results may be NumPy scalars; the tensor layer wraps them.
The modules of primitives are imported when one of theirs is first used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...lazy_modules import PRIMITIVES

_module_of = {name: module for module, names in PRIMITIVES.items() for name in names.split()}


class ArrayNamespace:
    """`xp` over arrays: the primitives, then the declared operators.

    Args:
        primitives: those that replace the primitives of `backends.numpy`.
        registry: the declared operators by key.
    """

    def __init__(self, primitives: dict[str, Callable[..., Any]], registry: Mapping[str, Any]) -> None:
        self.__dict__.update(primitives)
        self._registry = registry

    def __getattr__(self, name: str) -> Callable[..., Any]:
        result = primitive(name) if name in _module_of else self.declaration(name)
        setattr(self, name, result)
        return result

    def declaration(self, name: str) -> Callable[..., Any]:
        """Return the declared operator's forward over this namespace.

        Raises:
            AttributeError: there is no operator of this name.
        """
        op = self._registry.get(name)
        if op is None:
            if any(name in _primitives_of(module) for module in PRIMITIVES):  # one that is missing from the table
                return primitive(name)
            raise AttributeError(f"the array namespace has no operator {name!r}")
        bound: Any = op.forward
        if op.takes_xp:
            bound = partial(op.forward, self)
            bound.__name__ = name
        return bound


def is_primitive(name: str) -> bool:
    """Return whether there is a primitive of this name."""
    return name in _module_of


def primitive(name: str) -> Callable[..., Any]:
    """Return the primitive of a name; its module is imported if it was not.

    Raises:
        KeyError: there is none.
    """
    module = _module_of.get(name) or next((each for each in PRIMITIVES if name in _primitives_of(each)), None)
    if module is None:
        raise KeyError(name)
    return _primitives_of(module)[name]


def _primitives_of(module: str) -> dict[str, Callable[..., Any]]:
    result: dict[str, Callable[..., Any]] = importlib.import_module(f"{__name__}.{module}").PRIMITIVES
    return result


def primitives() -> dict[str, Callable[..., Any]]:
    """Return all primitives by name."""
    return {name: primitive(name) for name in _module_of}
