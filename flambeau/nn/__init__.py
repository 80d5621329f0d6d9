"""`torch.nn`: modules, layers, losses, initializers; submodules and classes are imported on first access."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import modules

if TYPE_CHECKING:
    from . import functional, init, parallel, parameter, utils  # noqa: F401
    from .modules import *  # noqa: F403
    from .parallel import DataParallel  # noqa: F401
    from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter  # noqa: F401

_SUBMODULES = ("_reduction", "attention", "common_types", "functional", "grad", "init", "modules", "parallel",
               "parameter", "utils")
_FILE_OF = {"Buffer": "parameter", "Parameter": "parameter", "UninitializedBuffer": "parameter",
            "UninitializedParameter": "parameter", "DataParallel": "parallel",
            "factory_kwargs": "factory_keywords"}

__all__ = sorted([*modules.FILE_OF, *_FILE_OF, *_SUBMODULES[1:]])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in modules.FILE_OF:
        value = getattr(modules, name)
    elif name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
