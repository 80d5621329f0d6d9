"""`torch._VF`: the functions of `torch` as a module; some programs call recurrent networks by it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module(__package__), name)
