"""Neural network building blocks: modules, layers, losses, initial values."""

from __future__ import annotations

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _layers
from .parameter import Buffer, Parameter

__all__ = sorted([*_layers, "Buffer", "Parameter", "functional", "init", "modules", "parameter", "utils"])
