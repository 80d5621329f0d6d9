"""Neural network building blocks: modules, layers, losses, initial values."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import modules

if TYPE_CHECKING:
    from . import functional, init, parallel, parameter, utils  # noqa: F401
    from .modules import *  # noqa: F403
    from .parallel import DataParallel  # noqa: F401
    from .parameter import Buffer, Parameter  # noqa: F401

_ROOMS = ("functional", "init", "modules", "parallel", "parameter", "utils")
_ELSEWHERE = {"Buffer": "parameter", "Parameter": "parameter", "DataParallel": "parallel"}

__all__ = sorted([*modules.HOME, *_ELSEWHERE, *_ROOMS])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in modules.HOME:
        found = getattr(modules, name)
    elif name in _ELSEWHERE:
        found = getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
