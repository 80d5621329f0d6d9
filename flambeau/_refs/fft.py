"""`torch._refs.fft`: the functions of `torch.fft`."""

from __future__ import annotations

from typing import Any

from .. import fft as _functions


def __getattr__(name: str) -> Any:
    return getattr(_functions, name)
