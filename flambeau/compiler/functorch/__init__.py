"""`torch._functorch`: the settings of AOTAutograd, stored without effect, and the parts of `vmap`."""

from __future__ import annotations

from ...func import batches as vmap
from ...settings import Settings
from .. import config_defaults

config = Settings("torch._functorch.config", config_defaults.FUNCTORCH)

__all__ = ["config", "vmap"]
