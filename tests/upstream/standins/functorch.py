"""Stand-in for the package `functorch`: flambeau's own, and for what needs a tracer, nothing."""

from __future__ import annotations

import importlib
from typing import Any

from ..absent import Absent


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(importlib.import_module("torch.functorch"), name)
    except AttributeError:
        return Absent(f"functorch.{name}", internal=True)
