"""Late registration: attributes of an interface that the modules of a higher layer set, imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class LateRegistration:
    """An interface whose functions higher layers supply. What is asked for before it is set is registered first.

    >>> class Kernels(LateRegistration):
    ...     pass
    >>> kernels = Kernels()
    >>> kernels.register_late(("double",), lambda: setattr(kernels, "double", lambda x: 2 * x))
    >>> kernels.double(4)
    8
    """

    def __init__(self) -> None:
        self._loaders: dict[str, Callable[[], None]] = {}

    def register_late(self, names: tuple[str, ...], load: Callable[[], None]) -> None:
        """Call `load`, which sets these attributes, when one of them is first read."""
        self._loaders.update(dict.fromkeys(names, load))

    def __getattr__(self, name: str) -> Any:
        loaders: dict[str, Callable[[], None]] = self.__dict__.get("_loaders", {})
        if name in loaders:
            loaders[name]()
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


__all__ = ["LateRegistration"]
