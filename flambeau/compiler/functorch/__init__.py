"""`torch._functorch`: the settings of AOTAutograd, and the parts of `vmap`."""

from __future__ import annotations

from typing import Any

from ...func import batches as vmap
from ...settings import Settings
from .. import config_defaults
from ..tracing.recomputation import memory_budget


def _on_change(name: str, value: Any) -> None:
    if name == "activation_memory_budget":
        memory_budget[0] = value


#: settings; `activation_memory_budget` has an effect, on functions that are compiled afterwards: the others are stored
config = Settings("torch._functorch.config", config_defaults.FUNCTORCH, _on_change)

__all__ = ["config", "vmap"]
