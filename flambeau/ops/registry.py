"""The registry of declared operators, which imports the module of an operator when it is first looked up."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

from ..lazy_modules import COMPLEMENTS, OPERATORS

_PACKAGE = __name__.rpartition(".")[0]


class Registry(dict[str, Any]):
    """Declared operators by key.

    `registry[key]`, `get` and `in` import the module that `lazy_modules` names for the key. What needs all operators
    (iteration, `len`, a key that the table lacks) imports all modules; the order is that of the table.
    """

    def __init__(self) -> None:
        super().__init__()
        self._module_of = {key: module for module, keys in OPERATORS.items() for key in keys.split()}
        self._complete = False

    def __missing__(self, key: str) -> Any:
        module = self._module_of.get(key)
        if module is None:  # a declaration that is missing from the table
            self.load_all()
        else:
            load(module)
        if not dict.__contains__(self, key):
            raise KeyError(key)
        return dict.__getitem__(self, key)

    def declared(self, key: str) -> Any:
        """Return the operator of a key if its module is imported already, else None.

        >>> from flambeau.ops.declare import REGISTRY
        >>> REGISTRY["tanh"] is REGISTRY.declared("tanh")
        True
        """
        return dict.get(self, key)

    def key_of(self, op: Any) -> str | None:
        """Return the key of an operator; None for one that is in no registry.

        >>> from flambeau.ops.declare import REGISTRY
        >>> REGISTRY.key_of(REGISTRY["_sum_all"])
        '_sum_all'
        """
        return next((key for key, each in list(dict.items(self)) if each is op), None)

    def known(self) -> Iterable[str]:
        """Return the keys of the table, and of operators that were declared since, without importing modules."""
        return {**self._module_of, **dict.fromkeys(dict.keys(self))}

    def load_all(self) -> dict[str, Any]:
        """Import all modules of operators; returns the operators in the order of the table."""
        if not self._complete:
            for module in OPERATORS:
                load(module)
            self._complete = True
        position = {key: i for i, key in enumerate(self._module_of)}
        return dict(sorted(dict.items(self), key=lambda item: position.get(item[0], len(position))))

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key] if key in self else default  # noqa: SIM401
        except KeyError:  # the table is older than the modules
            return default

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or key in self._module_of

    def __iter__(self) -> Iterator[str]:
        return iter(self.load_all())

    def __len__(self) -> int:
        return len(self.load_all())

    def keys(self) -> Any:
        return self.load_all().keys()

    def values(self) -> Any:
        return self.load_all().values()

    def items(self) -> Any:
        return self.load_all().items()


def load(module: str) -> None:
    """Import a module of declarations, and those that declare more of its operators."""
    importlib.import_module(f"{_PACKAGE}.{module}")
    for other in COMPLEMENTS.get(module, ()):
        importlib.import_module(f"{_PACKAGE}.{other}")


__all__ = ["Registry", "load"]
