"""`torch._inductor`: the settings of PyTorch's code generator, stored without effect."""

from __future__ import annotations

from ...settings import Settings
from .config_defaults import INDUCTOR


def _make_config() -> Settings:
    name = "torch._inductor.config"
    groups = {group: Settings(f"{name}.{group}", values) for group, values in INDUCTOR.items() if group}
    return Settings(name, {**INDUCTOR[""], **groups})


#: PyTorch's settings with its defaults; others do not exist
config = _make_config()

__all__ = ["config"]
