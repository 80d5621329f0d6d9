"""`torch._refs.nn.functional`: the functions of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from ...nn import functional as _functions


def __getattr__(name: str) -> Any:
    return getattr(_functions, name)
