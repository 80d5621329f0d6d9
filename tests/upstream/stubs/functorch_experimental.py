"""Stub for `functorch.experimental`: flambeau's own."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module("torch.functorch.experimental"), name)
