"""`torch._refs.linalg`: the functions of `torch.linalg`."""

from __future__ import annotations

from typing import Any

from .. import linalg as _functions


def __getattr__(name: str) -> Any:
    return getattr(_functions, name)
