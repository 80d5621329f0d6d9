"""Stand-in for the package `functorch`, whose names are those of `torch.func` today."""

from __future__ import annotations

import importlib
from typing import Any

import torch.func

from ..absent import Absent

#: functorch's own, which torch.func has under no name: superseded by functional_call and stack_module_state
_SUPERSEDED = {"make_functional", "make_functional_with_buffers", "combine_state_for_ensemble", "make_fx"}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "experimental":
        return importlib.import_module(__name__)
    try:
        return getattr(torch.func, name)
    except AttributeError:
        return Absent(f"functorch.{name}", internal=name in _SUPERSEDED)
