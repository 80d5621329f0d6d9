"""Neural network building blocks: modules, layers, losses, initial values."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import modules

if TYPE_CHECKING:
    from . import functional, init, parameter, utils  # noqa: F401
    from .modules import *  # noqa: F403
    from .parameter import Buffer, Parameter  # noqa: F401

_ROOMS = ("functional", "init", "modules", "parameter", "utils")

__all__ = sorted([*modules.HOME, "Buffer", "Parameter", *_ROOMS])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in modules.HOME:
        found = getattr(modules, name)
    elif name in ("Buffer", "Parameter"):
        found = getattr(import_module(f"{__name__}.parameter"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
