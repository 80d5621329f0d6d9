"""Operators that a program defines: schemas from type hints, kernels, and how a call runs."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("custom_ops", "fake_impl", "infer_schema", "kernels", "registry", "utils")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
