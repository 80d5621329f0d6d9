"""Stub for the package `functorch`: flambeau's own, and for what needs a tracer, nothing."""

from __future__ import annotations

import importlib
from typing import Any

from ..placeholder import Placeholder


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(importlib.import_module("torch.functorch"), name)
    except AttributeError:
        return Placeholder(f"functorch.{name}", internal=True)
