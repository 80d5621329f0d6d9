"""`torch._functorch`: the settings of how PyTorch differentiates graphs, kept as they are written and of no effect."""

from __future__ import annotations

from .. import defaults
from ..settings import Settings

config = Settings("torch._functorch.config", defaults.FUNCTORCH)

__all__ = ["config"]
