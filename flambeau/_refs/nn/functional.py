"""`torch._refs.nn.functional`: the functions of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ...nn import functional as _functions


def mish_(a: Tensor) -> Tensor:
    """`mish` in place."""
    return _functions.mish(a, inplace=True)


def __getattr__(name: str) -> Any:
    return getattr(_functions, name)
