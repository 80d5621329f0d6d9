"""`torch.utils._exposed_in`: functions under the name of another module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def exposed_in(module: str) -> Callable[[Any], Any]:
    """A decorator that sets the module of a function, `__module__`.

    >>> exposed_in("torch.func")(lambda: None).__module__
    'torch.func'
    """
    def expose(fn: Any) -> Any:
        fn.__module__ = module
        return fn

    return expose


__all__ = ["exposed_in"]
