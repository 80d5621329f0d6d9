"""`torch.utils.serialization`: the options of saving and loading."""

from __future__ import annotations

from ...serialization import options as config

__all__ = ["config"]
