"""`torch._functorch`: the settings of how PyTorch differentiates graphs, kept as they are written and of no effect."""

from __future__ import annotations

from ...settings import Settings
from .. import config_defaults

config = Settings("torch._functorch.config", config_defaults.FUNCTORCH)

__all__ = ["config"]
